"""What is chosen by the rows where the user says nothing: columns, learner, density."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from anymix._arrays import FloatArray, IntArray
from anymix.densities import ContrastiveDensity, GaussianKDE
from anymix.estimators._defaults import candidates, default_estimator, kind_of
from anymix.estimators._held_out import N_PARTS, choose_density
from anymix.estimators._questions import Questions
from anymix.estimators._rows import Rows, folds_of, is_text
from anymix.estimators._set_aside import with_set_aside
from anymix.estimators._source_training import SourceTrainer, takes_weight
from anymix.exceptions import InputError
from anymix.sources import LearningSettings, Source, Tables
from anymix.tables import Columns

# A word of fewer rows is a gap, as it is to a `Reference`: all parts must have one coding.
FEW = 5


class Choices(Questions):
    """Columns are read by their kinds, learner and density chosen by the rows, unless given."""

    chooses_learner: ClassVar[bool] = True
    density: Any
    sources: Sequence[Source] | None
    random_state: Any
    set_aside: str | Sequence[str] | None

    def _takes_gaps(self) -> bool:
        able = isinstance(self.density, str | ContrastiveDensity)
        return able and self.estimator is None and not self.sources

    def _describe(self, X: Any) -> Columns | None:
        """Read mixed tables by their columns, unless the user's own estimator sees to them."""
        if self.sources:
            known = [source.columns for source in self.sources]
            return known[0] if all(one == known[0] for one in known) else None
        if self.estimator is not None or kind_of(X) != "mixed":
            return None
        return Columns.of(X, least=FEW)

    def _density(self) -> Any:
        if self._chooses():
            return None
        if self.density is not None or self.sources:
            return None if isinstance(self.density, str) else self.density
        return GaussianKDE(random_state=self.random_state)

    def _chooses(self) -> bool:
        """Whether held-out rows choose the density: not where all sources have brought one."""
        if not isinstance(self.density, str):
            return False
        return not self.sources or any(source.density is None for source in self.sources)

    def _choose_learner(self, X: Any) -> None:
        """Choose the learner by the rows, where none was given."""
        if self.estimator is None and not self.sources and is_text(X):
            first = next(iter(X))
            if not isinstance(first, str):
                raise InputError(
                    "X", "holds lists of tokens; join each to a text, or give an estimator for them"
                )
        if not self.sources:
            seed = self.random_state
            chosen = default_estimator(X, self._classification(), seed)
            self.estimator_ = chosen if self.estimator is None else self.estimator

    def estimator_or_default(self) -> Any:
        """Return the estimator to clone for each domain."""
        return self.estimator_

    def _known_goal(self, tables: Tables) -> LearningSettings:
        """Return the goal with the sites that are known to be set aside before z is learned."""
        asked = None if self.set_aside == "worst" else self.set_aside
        return with_set_aside(asked, tables, self._goal(), self.source_names_)

    def _weigh(
        self, rows: Rows, trainer: SourceTrainer, tables: Tables, fold: IntArray
    ) -> tuple[Tables, FloatArray | None]:
        """Add what weighs the sources, to them and to the held-out tables.

        The second answer are held-out log-densities where others than the weights say how strange
        a row is, or where a reference is to be added to them.
        """
        if not self._chooses():
            if self.columns_ is not None and isinstance(trainer.density, ContrastiveDensity):
                # Rows are encoded here, and no longer show which columns hold words.
                density = trainer.density.with_shared(rows.X, rows.domain, self.columns_)
                trainer = replace(trainer, density=density)
            folds = range(int(fold.max()) + 1)
            tables = replace(tables, log_masses=trainer.held_out_masses(rows, fold, folds))
            strange = None
        else:
            # Densities are trained here, whatever the sources brought.
            fold = folds_of(rows, N_PARTS, self._classification(), self.random_state)
            options = candidates(rows, self.columns_, self.random_state)
            if rows.weight is not None:
                options = {name: one for name, one in options.items() if takes_weight(one)}
            found = choose_density(trainer, rows, tables, fold, self._known_goal(tables), options)
            self.density_choice_, log_masses, strange = found
            tables = replace(tables, log_masses=log_masses)
            trainer = replace(trainer, density=options[self.density_choice_.chosen])
            if self.density_choice_.novelty is not None:
                kept = replace(trainer, density=options[self.density_choice_.novelty])
                self.sources_, _ = kept.with_densities(self.sources_, rows)
        sources, self.router_ = trainer.with_densities(self.sources_, rows)
        if self.columns_ is not None and not self.sources:
            sources = [replace(source, columns=self.columns_) for source in sources]
        self.sources_ = sources
        return replace(tables, has_densities=self.router_ is None), strange
