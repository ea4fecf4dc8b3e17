"""Works cited in reports, as BibTeX."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reference:
    """A published work: its citation in running text, its kind and its fields."""

    cited: str
    kind: str
    fields: dict[str, str]

    def bibtex(self, key: str) -> str:
        """Return the BibTeX entry."""
        lines = [f"  {name} = {{{value}}}" for name, value in self.fields.items()]
        return f"@{self.kind}{{{key},\n" + ",\n".join(lines) + "\n}"


def _article(cited: str, author: str, title: str, journal: str, year: str, **more: str) -> Reference:
    return Reference(cited, "article", {"author": author, "title": title, "journal": journal, "year": year, **more})


def _paper(cited: str, author: str, title: str, booktitle: str, year: str, **more: str) -> Reference:
    return Reference(
        cited, "inproceedings", {"author": author, "title": title, "booktitle": booktitle, "year": year, **more}
    )


_ACL = "Annual Meeting of the Association for Computational Linguistics"

REFERENCES: dict[str, Reference] = {
    "kocmi2024": _paper(
        "Kocmi et al., 2024",
        "Kocmi, Tom and Zouhar, Vil{\\'e}m and Avramidis, Eleftherios and Grundkiewicz, Roman and Karpinska, Marzena "
        "and Popovi{\\'c}, Maja and Sachan, Mrinmaya and Shmatova, Mariya",
        "Error Span Annotation: A Balanced Approach for Human Evaluation of Machine Translation",
        "Proceedings of the Ninth Conference on Machine Translation",
        "2024",
    ),
    "freitag2021": _article(
        "Freitag et al., 2021",
        "Freitag, Markus and Foster, George and Grangier, David and Ratnakar, Viresh and Tan, Qijun and "
        "Macherey, Wolfgang",
        "Experts, Errors, and Context: A Large-Scale Study of Human Evaluation for Machine Translation",
        "Transactions of the Association for Computational Linguistics",
        "2021",
    ),
    "mathet2015": _article(
        "Mathet et al., 2015",
        "Mathet, Yann and Widl{\\\"o}cher, Antoine and M{\\'e}tivier, Jean-Philippe",
        "The Unified and Holistic Method Gamma ($\\gamma$) for Inter-Annotator Agreement Measure and Alignment",
        "Computational Linguistics",
        "2015",
    ),
    "sakaguchi2018": _paper(
        "Sakaguchi & Van Durme, 2018",
        "Sakaguchi, Keisuke and Van Durme, Benjamin",
        "Efficient Online Scalar Annotation with Bounded Support",
        f"Proceedings of the 56th {_ACL} (Volume 1: Long Papers)",
        "2018",
    ),
    "pighin2012": _paper(
        "Pighin et al., 2012",
        "Pighin, Daniele and Formiga, Llu{\\'i}s and M{\\`a}rquez, Llu{\\'i}s",
        "A Graph-based Strategy to Streamline Translation Quality Assessments",
        "Proceedings of the 10th Conference of the Association for Machine Translation in the Americas",
        "2012",
    ),
    "snow2008": _paper(
        "Snow et al., 2008",
        "Snow, Rion and O'Connor, Brendan and Jurafsky, Daniel and Ng, Andrew Y.",
        "Cheap and Fast -- But is it Good? {E}valuating Non-Expert Annotations for Natural Language Tasks",
        "Proceedings of the 2008 Conference on Empirical Methods in Natural Language Processing",
        "2008",
    ),
    "kiritchenko2017": _paper(
        "Kiritchenko & Mohammad, 2017",
        "Kiritchenko, Svetlana and Mohammad, Saif M.",
        "Best-Worst Scaling More Reliable than Rating Scales: A Case Study on Sentiment Intensity Annotation",
        f"Proceedings of the 55th {_ACL} (Volume 2: Short Papers)",
        "2017",
        pages="465--470",
        doi="10.18653/v1/P17-2074",
    ),
    "lindley1956": _article(
        "Lindley, 1956",
        "Lindley, Dennis V.",
        "On a Measure of the Information Provided by an Experiment",
        "The Annals of Mathematical Statistics",
        "1956",
        volume="27",
        number="4",
        pages="986--1005",
    ),
    "bradley1952": _article(
        "Bradley & Terry, 1952",
        "Bradley, Ralph Allan and Terry, Milton E.",
        "Rank Analysis of Incomplete Block Designs: {I}. {T}he Method of Paired Comparisons",
        "Biometrika",
        "1952",
        volume="39",
        number="3/4",
        pages="324--345",
    ),
    "agresti1992": _article(
        "Agresti, 1992",
        "Agresti, Alan",
        "Analysis of Ordinal Paired Comparison Data",
        "Applied Statistics",
        "1992",
        volume="41",
        number="2",
        pages="287--297",
    ),
    "thurstone1927": _article(
        "Thurstone, 1927",
        "Thurstone, Louis L.",
        "A Law of Comparative Judgment",
        "Psychological Review",
        "1927",
        volume="34",
        number="4",
        pages="273--286",
    ),
    "plackett1975": _article(
        "Plackett, 1975",
        "Plackett, Robin L.",
        "The Analysis of Permutations",
        "Journal of the Royal Statistical Society. Series C (Applied Statistics)",
        "1975",
        volume="24",
        number="2",
        pages="193--202",
    ),
    "luce1959": Reference(
        "Luce, 1959",
        "book",
        {
            "author": "Luce, R. Duncan",
            "title": "Individual Choice Behavior: A Theoretical Analysis",
            "publisher": "Wiley",
            "year": "1959",
        },
    ),
    "herbrich2006": _paper(
        "Herbrich et al., 2006",
        "Herbrich, Ralf and Minka, Tom and Graepel, Thore",
        "{TrueSkill}: A {B}ayesian Skill Rating System",
        "Advances in Neural Information Processing Systems 19",
        "2006",
    ),
    "elo1978": Reference(
        "Elo, 1978",
        "book",
        {
            "author": "Elo, Arpad E.",
            "title": "The Rating of Chessplayers, Past and Present",
            "publisher": "Arco",
            "year": "1978",
        },
    ),
    "marley2005": _article(
        "Marley & Louviere, 2005",
        "Marley, A. A. J. and Louviere, Jordan J.",
        "Some Probabilistic Models of Best, Worst, and Best--Worst Choices",
        "Journal of Mathematical Psychology",
        "2005",
        volume="49",
        number="6",
        pages="464--480",
    ),
    "dawid1979": _article(
        "Dawid & Skene, 1979",
        "Dawid, A. P. and Skene, A. M.",
        "Maximum Likelihood Estimation of Observer Error-Rates Using the {EM} Algorithm",
        "Journal of the Royal Statistical Society. Series C (Applied Statistics)",
        "1979",
        volume="28",
        number="1",
        pages="20--28",
    ),
    "hovy2013": _paper(
        "Hovy et al., 2013",
        "Hovy, Dirk and Berg-Kirkpatrick, Taylor and Vaswani, Ashish and Hovy, Eduard",
        "Learning Whom to Trust with {MACE}",
        "Proceedings of NAACL-HLT 2013",
        "2013",
    ),
    "krippendorff2004": Reference(
        "Krippendorff, 2004",
        "book",
        {
            "author": "Krippendorff, Klaus",
            "title": "Content Analysis: An Introduction to Its Methodology",
            "edition": "2nd",
            "publisher": "Sage",
            "year": "2004",
        },
    ),
    "brown1910": _article(
        "Brown, 1910",
        "Brown, William",
        "Some Experimental Results in the Correlation of Mental Abilities",
        "British Journal of Psychology",
        "1910",
        volume="3",
        number="3",
        pages="296--322",
    ),
    "spearman1910": _article(
        "Spearman, 1910",
        "Spearman, Charles",
        "Correlation Calculated from Faulty Data",
        "British Journal of Psychology",
        "1910",
        volume="3",
        number="3",
        pages="271--295",
    ),
    "wilson1927": _article(
        "Wilson, 1927",
        "Wilson, Edwin B.",
        "Probable Inference, the Law of Succession, and Statistical Inference",
        "Journal of the American Statistical Association",
        "1927",
        volume="22",
        number="158",
        pages="209--212",
    ),
}


def cite(*keys: str) -> str:
    """Return a citation for running text."""
    return "(" + "; ".join(REFERENCES[key].cited for key in keys) + ")"


def bibliography(keys: Iterable[str], software: str, year: int) -> str:
    """Return the entries of these works and of the software, sorted by key."""
    own = Reference(
        "Steelyard",
        "misc",
        {
            "author": "{The Steelyard authors}",
            "title": "Steelyard: Graded Human Judgments",
            "note": f"Version {software}",
            "year": str(year),
        },
    )
    entries = {key: REFERENCES[key] for key in keys} | {"steelyard": own}
    return "\n\n".join(entries[key].bibtex(key) for key in sorted(entries))
