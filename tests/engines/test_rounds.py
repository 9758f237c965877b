"""Learners in threads share rounds, and an error of a round reaches all of them."""

import random
import time

import pytest

from anymix.engines.rounds import Rounds


def asks(rounds, n, dawdle=False):
    def task():
        total = 0
        for i in range(n):
            if dawdle:
                time.sleep(random.random() * 1e-3)
            total += rounds.ask(i)
        return total

    return task


@pytest.mark.parametrize("trial", range(10))
def test_rounds_are_as_many_as_the_longest_task_needs(trial):
    rounds = Rounds(lambda questions: [2 * q for q in questions])

    def nested(before, inner, after):
        def task():
            first = asks(rounds, before, True)()
            return first + sum(rounds.together([asks(rounds, n, True) for n in inner])) + after()

        return task

    tasks = [nested(1, (3, 2), asks(rounds, 1)), nested(1, (4, 1), asks(rounds, 2))]
    assert rounds.together(tasks) == [0 + (6 + 2) + 0, 0 + (12 + 0) + 2]
    assert rounds.n_rounds == 1 + 4 + 2


def test_questions_outside_of_tasks_are_rounds_of_their_own():
    rounds = Rounds(lambda questions: questions)
    assert [rounds.ask(5), rounds.ask(6)] == [5, 6]
    assert rounds.n_rounds == 2
    assert rounds.together([]) == []


def test_an_error_of_a_round_reaches_every_task():
    def send(questions):
        raise ZeroDivisionError("the line is dead")

    rounds, heard = Rounds(send), []

    def task():
        try:
            rounds.ask(1)
        except ZeroDivisionError as error:
            heard.append(error)
            raise

    with pytest.raises(ZeroDivisionError, match="the line is dead"):
        rounds.together([task, task, task])
    assert len(heard) == 3


def test_a_task_that_fails_by_itself_does_not_hold_up_the_others():
    rounds = Rounds(lambda questions: questions)

    def fails():
        rounds.ask(1)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        rounds.together([asks(rounds, 3), fails, asks(rounds, 2)])
    assert rounds.n_rounds == 3
