"""anymix completion: a script by which a shell completes commands, options, choices and files."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass

from anymix.cli import COMMANDS, build_parser
from anymix.cli.argument_types import folder, name, table
from anymix.cli.console import Console

FILES = {"APP", "FILE", "FOLDER", "NAME=TABLE", "SOURCE", "SUMMARY", "TABLE"}


@dataclass(frozen=True)
class Option:
    """An option: what follows it is a file, one of the choices, another word, or nothing."""

    flag: str
    what: str
    value: bool
    files: bool
    choices: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command, its options, and the choices for its other words, which are files without them."""

    words: str
    what: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]


def add_arguments(parser: ArgumentParser) -> None:
    """Describe the command."""
    parser.add_argument("shell", choices=tuple(SCRIPTS), help="shell that is to read the script")


def run(args: Namespace, console: Console) -> int:
    """Run the command."""
    script = SCRIPTS[args.shell]([_described(command) for command in COMMANDS])
    console.result(script.rstrip("\n"), {"shell": args.shell, "script": script})
    return 0


def _described(words: str) -> Command:
    actions = build_parser(words)._actions
    options = tuple(_option(action) for action in actions if action.option_strings)
    listed = [_choices(action) for action in actions if not action.option_strings]
    return Command(words, COMMANDS[words], options, listed[0] if listed else ())


def _option(action: Action) -> Option:
    files = action.type in (folder, name, table) or action.metavar in FILES
    flag = action.option_strings[-1]
    return Option(flag, action.help or "", action.nargs != 0, files, _choices(action))


def _choices(action: Action) -> tuple[str, ...]:
    """Return the words that an action takes; the type of --engine has them as `names`."""
    found = action.choices or getattr(action.type, "keywords", {}).get("names", ())
    return tuple(map(str, found))


def _by_first_word(commands: list[Command]) -> dict[str, list[Command]]:
    """Group the commands by their first word."""
    found: dict[str, list[Command]] = {}
    for command in commands:
        found.setdefault(command.words.split()[0], []).append(command)
    return found


def _verbs(commands: list[Command]) -> dict[str, list[str]]:
    """Return the second words of those that have one."""
    groups = _by_first_word([command for command in commands if " " in command.words])
    return {first: [c.words.split()[1] for c in some] for first, some in groups.items()}


BASH = """\
# Completion of anymix for bash.
_anymix_words() {{
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$*" -- "$cur"))
}}
_anymix() {{
    local IFS=$'\\n' cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}}
    local command=${{COMP_WORDS[1]}}
    COMPREPLY=()
    if (( COMP_CWORD == 1 )); then
        _anymix_words {firsts}
        return
    fi
    case $command in
{nouns}
    esac
    # bash cuts words at =, as in north=north.csv and --task=regression
    if [[ $cur == "=" ]]; then
        cur=
    elif [[ $prev == "=" ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    case "$command $prev" in
{values}
    esac
    case "$command $cur" in
{rest}
    esac
    COMPREPLY=($(compgen -f -- "$cur"))
}}
complete -o filenames -F _anymix anymix
"""
BASH_NOUN = """\
        {noun})
            if (( COMP_CWORD == 2 )); then
                _anymix_words {verbs}
                return
            fi
            command="$command ${{COMP_WORDS[2]}}";;"""


def bash(commands: list[Command]) -> str:
    """Return the script for bash."""
    nouns = _verbs(commands).items()
    return BASH.format(
        firsts=" ".join(_by_first_word(commands)),
        nouns="\n".join(BASH_NOUN.format(noun=n, verbs=" ".join(v)) for n, v in nouns),
        values="\n".join(_bash_values(commands)),
        rest="\n".join(_bash_rest(commands)),
    )


def _bash_values(commands: list[Command]) -> Iterator[str]:
    for command in commands:
        for option in command.options:
            if option.value and not option.files:
                words = f" _anymix_words {' '.join(option.choices)};" if option.choices else ""
                yield f'        "{command.words} {option.flag}"){words} return;;'


def _bash_rest(commands: list[Command]) -> Iterator[str]:
    for command in commands:
        flags = " ".join(option.flag for option in command.options)
        yield f'        "{command.words} -"*) _anymix_words {flags}; return;;'
        if command.choices:
            words = " ".join(command.choices)
            yield f'        "{command.words} "*) _anymix_words {words}; return;;'


ZSH = """\
#compdef anymix
# Completion of anymix for zsh.
_anymix() {{
    local command=$words[2]
    local -a listed
    if (( CURRENT == 2 )); then
        listed=({firsts})
        _describe 'command' listed
        return
    fi
    case $command in
{nouns}
    esac
    shift words
    (( CURRENT -= 1 ))
    case $command in
{cases}
    esac
}}
if [[ $funcstack[1] == _anymix ]]; then _anymix "$@"; else compdef _anymix anymix; fi
"""
ZSH_NOUN = """\
        {noun})
            if (( CURRENT == 3 )); then
                listed=({listed})
                _describe 'command' listed
                return
            fi
            command="$command $words[3]"
            shift words
            (( CURRENT -= 1 ));;"""


def zsh(commands: list[Command]) -> str:
    """Return the script for zsh."""
    groups = _by_first_word(commands).items()
    return ZSH.format(
        firsts=" ".join(_quoted(f"{first}:{_about(first, some)}") for first, some in groups),
        nouns="\n".join(
            ZSH_NOUN.format(noun=noun, listed=" ".join(_zsh_verbs(commands, noun, verbs)))
            for noun, verbs in _verbs(commands).items()
        ),
        cases="\n".join(_zsh_case(command) for command in commands),
    )


def _zsh_verbs(commands: list[Command], noun: str, verbs: list[str]) -> Iterator[str]:
    return (_quoted(f"{verb}:{_what(commands, noun, verb)}") for verb in verbs)


def _zsh_case(command: Command) -> str:
    rest = f"({' '.join(command.choices)})" if command.choices else "_files"
    specs = [*map(_zsh_option, command.options), f"*:word:{rest}"]
    lines = " \\\n                ".join(map(_quoted, specs))
    return f'        "{command.words}")\n            _arguments \\\n                {lines};;'


def _zsh_option(option: Option) -> str:
    what = option.what.translate({ord(c): f"\\{c}" for c in "[]:\\"})
    values = f"({' '.join(option.choices)})" if option.choices else "_files" * option.files
    # Given twice, an option is not offered again; some may be, so all are.
    return f"*{option.flag}[{what}]" + (f":value:{values or ' '}" if option.value else "")


FISH = """\
# Completion of anymix for fish.
function __anymix_is
    set -l words (commandline -opc)
    test (count $words) -gt (count $argv)
    and test "$words[2..(math (count $argv) + 1)]" = "$argv"
end
complete -c anymix -f -n 'test (count (commandline -opc)) -eq 1'
{lines}
"""


def fish(commands: list[Command]) -> str:
    """Return the script for fish."""
    first = "test (count (commandline -opc)) -eq 1"
    groups = _by_first_word(commands).items()
    lines = [
        _fish(first, f"-f -a {word} -d {_quoted(_about(word, some))}") for word, some in groups
    ]
    for noun, verbs in _verbs(commands).items():
        at = f"__anymix_is {noun}; and test (count (commandline -opc)) -eq 2"
        lines += [
            _fish(at, f"-f -a {verb} -d {_quoted(_what(commands, noun, verb))}") for verb in verbs
        ]
    for command in commands:
        at = f"__anymix_is {command.words}"
        lines += [_fish(at, _fish_option(option)) for option in command.options]
        if command.choices:
            lines.append(_fish(at, f"-f -a {_quoted(' '.join(command.choices))}"))
    return FISH.format(lines="\n".join(lines))


def _fish(condition: str, rest: str) -> str:
    return f"complete -c anymix -n {_quoted(condition)} {rest}"


def _fish_option(option: Option) -> str:
    takes = "-r -F " if option.files else "-x "
    if option.choices:
        takes += f"-a {_quoted(' '.join(option.choices))} "
    return f"-l {option.flag.lstrip('-')} {takes * option.value}-d {_quoted(option.what)}"


def _about(first: str, some: list[Command]) -> str:
    """Describe a command, or name those that begin with a word."""
    return some[0].what if some[0].words == first else ", ".join(c.words.split()[1] for c in some)


def _what(commands: list[Command], noun: str, verb: str) -> str:
    return next(c.what for c in commands if c.words == f"{noun} {verb}")


def _quoted(text: str) -> str:
    r"""Quote a text for zsh and fish: in both an apostrophe ends the quotes and is escaped outside.

    Examples
    --------
    >>> print(_quoted("a site's file"))
    'a site'\''s file'
    """
    return "'" + text.replace("'", "'\\''") + "'"


SCRIPTS = {"bash": bash, "zsh": zsh, "fish": fish}
