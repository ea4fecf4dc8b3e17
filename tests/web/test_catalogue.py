"""The page's languages."""

from __future__ import annotations

import httpx
import pytest

from steelyard.errors import DataError
from steelyard.web import catalogue
from steelyard.web.catalogue import catalogue_for, catalogues, read_po

ARABIC = r"""
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);\n"
"X-Language-Name: العربية\n"

# a comment
#: static/annotate/main.js
msgid "Submit"
msgstr "إرسال"

msgid ""
"two "
"lines\n"
"and \"quotes\""
msgstr "a\tb"

#, fuzzy
msgid "unsure"
msgstr "غير مؤكد"

msgid "empty"
msgstr ""

msgid "{n} answer"
msgid_plural "{n} answers"
msgstr[0] "صفر"
msgstr[1] "واحد"
msgstr[2] "اثنان"
msgstr[3] "قليل"
msgstr[4] "كثير"
msgstr[5] "غير ذلك"
"""


@pytest.fixture
def languages(tmp_path, monkeypatch):
    (tmp_path / "ar.po").write_text(ARABIC, encoding="utf-8")
    (tmp_path / "de.po").write_text('msgid "Submit"\nmsgstr "Absenden"\n', encoding="utf-8")
    monkeypatch.setattr(catalogue, "FOLDER", tmp_path)
    catalogues.cache_clear()
    yield catalogues()
    catalogues.cache_clear()


def test_a_po_file_is_read_whole(languages):
    arabic = languages["ar"]
    assert (arabic.direction, arabic.own_name) == ("rtl", "العربية")
    assert arabic.gettext("Submit") == "إرسال"
    assert arabic.gettext('two lines\nand "quotes"') == "a\tb"
    # The rule of the file's header, by hand: 3 to 10 are few, 11 to 99 many, 100 other.
    plurals = [arabic.ngettext("{n} answer", "{n} answers", n) for n in (0, 1, 2, 7, 11, 100)]
    assert plurals == ["صفر", "واحد", "اثنان", "قليل", "كثير", "غير ذلك"]


@pytest.mark.parametrize("message", ["unsure", "empty", "never heard"])
def test_a_missing_message_is_said_in_english(languages, message):
    assert languages["ar"].gettext(message) == message
    assert languages["ar"].ngettext("one", "many", 2) == "many"


@pytest.mark.parametrize("line", ["msgstr oops", 'mgstr "oops"', 'msgstr "oo"ps"'])
def test_a_broken_line_is_named(line, tmp_path):
    path = tmp_path / "xx.po"
    path.write_text(f'msgid "a"\n{line}\n')
    with pytest.raises(DataError, match=r"xx\.po line 2"):
        read_po(path)


@pytest.mark.parametrize(
    ("wanted", "language"),
    [
        (("ar",), "ar"),
        (("ar-EG",), "ar"),
        ((None, "de"), "de"),
        (("fr", "de"), "de"),
        (("fr-CA,fr;q=0.9,de;q=0.5,ar;q=0.8",), "ar"),
        (("de;q=0,ar;q=0.1",), "ar"),
        (("de;q=x",), "en"),
        (("*",), "en"),
        (("",), "en"),
        ((), "en"),
        (("," * 5000,), "en"),
    ],
)
def test_the_best_language_there_is_is_chosen(languages, wanted, language):
    assert catalogue_for(*wanted).language == language


def test_the_page_speaks_the_readers_language(languages, make_study, serve_study):
    server = serve_study(make_study())
    page = httpx.get(server.page, headers={"Accept-Language": "ar-EG,en;q=0.5"}).text
    assert '<html lang="ar" dir="rtl">' in page
    assert "إرسال" in page
    assert '<html lang="de" dir="ltr">' in httpx.get(f"{server.page}?lang=de").text
    assert httpx.get(f"{server.api}/me", headers={"Accept-Language": "de"}).json()["language"] == "de"
    answer = httpx.get(f"{server.url}/api/v1/messages/de").json()
    assert answer == {"language": "de", "direction": "ltr", "messages": {"Submit": "Absenden"}}
    plural = httpx.get(f"{server.url}/api/v1/messages/ar").json()["messages"]["{n} answer"]
    assert plural[:2] == ["صفر", "واحد"]
    assert httpx.get(f"{server.url}/api/v1/messages/xx").json()["error"]["code"] == "no_such_language"


def test_the_study_may_choose_the_language(languages, make_study, serve_study):
    server = serve_study(make_study(extra='[annotators]\nlanguage = "de"'))
    assert 'lang="de"' in httpx.get(server.page, headers={"Accept-Language": "ar"}).text
    assert httpx.get(f"{server.api}/me", headers={"Accept-Language": "ar"}).json()["language"] == "de"
