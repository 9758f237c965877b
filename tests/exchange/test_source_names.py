"""Names of sources: any script, and nothing that hides, turns, climbs or looks like another."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anymix.exceptions import InputError
from anymix.exchange import check_different, check_name
from anymix.exchange.source_names import MOST_BYTES, alike, is_name

GOOD = [
    "Klinik München",
    "北京",
    "Αθήνα 2",
    "św. Łukasz",
    "मुंबई",
    "القاهرة",
    "a 2.b_c-d",
    "𠮷野家",
]


@pytest.mark.parametrize("name", [*GOOD, "x" * 64, "北" * 64])
def test_names_of_any_script(name):
    check_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("", " ", ".", "..", "../north", "a/b", "a\\b", "a\0", "a\nb", "a\tb", "\x1b[2J", "-a"),
        *(
            "a\u202eb",
            "a\u2066b",
            "a\u200db",
            "a\u200bb",
            "\u3164",
            "a\u034f",
            "a\ufe0f",
            "a\u00a0b",
        ),
        *(
            "a\u00a0b",
            "a\ud800",
            "\ue000",
            "\u0301a",
            "a" + "\u0316" * 4,
            "a=b",
            "a:b",
            "=1+1",
            "<b>",
        ),
        *("🏥", "x" * 65, "𠮷" * 64, "a|b", "a`b", "a$b", "a'b", 'a"b', "a%b", "a*b", "北京\u2028"),
    ],
)
def test_names_that_no_source_can_have(name):
    with pytest.raises(InputError, match="cannot name a source"):
        check_name(name)


def test_a_name_is_written_in_one_way():
    with pytest.raises(InputError, match="in another form than NFC"):
        check_name(unicodedata.normalize("NFD", "München"))


@pytest.mark.parametrize("name", ["All", "ａｌｌ", "WORST", "Likeliest  Source"])
def test_words_of_tables_are_taken_however_they_are_written(name):
    with pytest.raises(InputError, match="it has a special meaning"):
        check_name(name)


@given(st.text(max_size=70))
def test_what_may_be_a_name_is_safe_in_a_file(name):
    if is_name(name):
        assert name.isprintable()
        assert not set(name) & set('/\\:*?"<>|=\0')
        assert len(name.encode()) <= MOST_BYTES
        assert name[0] not in " .-_"
        assert unicodedata.normalize("NFC", name) == name


@pytest.mark.parametrize(
    ("one", "other"),
    [("North", "north"), ("Straße", "STRASSE"), ("ＡＢ", "ab"), ("a  b", "a b "), ("x", "x")],
)
def test_names_that_look_alike_are_one(one, other):
    assert alike(one) == alike(other)
    with pytest.raises(InputError, match="names that look alike"):
        check_different(["first", one, other], "sources", "pack again")
    check_different(["first", one, "second"], "sources", "pack again")
