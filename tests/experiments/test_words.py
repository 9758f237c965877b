"""The words beside the records compare only where records speak."""

import pytest

from tools import results, words

FILES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted(results.RECORDS.glob("*.md"))
    if path.stem != "README"
}


@pytest.mark.parametrize("name", FILES)
def test_words_compare_only_where_records_speak(name):
    assert not words.stray(name, FILES[name])


def test_listed_phrases_are_used_and_have_reasons():
    assert set(words.ALLOWED) <= set(FILES)
    for name, phrases in words.ALLOWED.items():
        assert not words.unused(name, FILES[name])
        for phrase, reason in phrases.items():
            assert len(reason.split()) > 3, phrase
            assert words.COMPARES.search(phrase), f"{phrase!r} need not be listed"


def test_the_list_is_short():
    assert sum(len(phrases) for phrases in words.ALLOWED.values()) <= 30


@pytest.mark.parametrize(
    "said",
    [
        "DW is better than unif.",
        "DW beats every rival\non every mixture.",
        "It stays below KMM at every point.",
        "Our default gains 0.02.",
        "The paper's claim holds.",
        "{claim DW; clean; better; K; clean; all} It is level with joint.",
    ],
)
def test_words_that_compare_on_their_own_are_refused(said):
    with pytest.raises(ValueError, match="compares in its own words"):
        words.check("sentiment", said)


def test_what_is_made_from_records_may_compare():
    words.check("sentiment", "Against\n\n{claim DW; clean; better; K; clean; all}\n")


def test_a_listed_phrase_covers_no_other_words():
    phrase = next(iter(words.ALLOWED["evidence"]))
    assert not words.stray("evidence", phrase)
    assert words.stray("evidence", f"{phrase}, and anymix is better.")
    assert words.stray("office", phrase), "a phrase is listed for one file"


def test_the_page_is_not_written_with_words_that_compare(monkeypatch, tmp_path):
    for path in results.RECORDS.glob("*.jsonl"):
        (tmp_path / path.name).symlink_to(path)
    for name, text in FILES.items():
        (tmp_path / f"{name}.md").write_text(text, encoding="utf-8")
    monkeypatch.setattr(results, "RECORDS", tmp_path)
    assert results.page() == results.PAGE.read_text(encoding="utf-8")
    (tmp_path / "office.md").write_text(FILES["office"] + "anymix is better.\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"office\.md compares in its own words"):
        results.page()
