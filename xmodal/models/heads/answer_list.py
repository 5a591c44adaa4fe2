"""Lists of answers to choose from."""

from collections.abc import Sequence

from xmodal.datasets.answers import normalize_answer, normalize_lxmert_answer

# Forms of an answer; the first form in which two answers agree decides.
_FORMS = (str, normalize_lxmert_answer, normalize_answer)


class AnswerTable:
    """Finds the index of an answer in a list, by its text or by a normalised form of it.

    The forms are LXMERT's and that of VQA's evaluation. Answers of which a form leaves nothing, as
    of 'a', are only equal by their text.

    Args:
        answers: the list; of answers with the same form, the first counts.
    """

    def __init__(self, answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self._indices = [{} for _ in _FORMS]
        for index, answer in enumerate(self.answers):
            for indices, form in zip(self._indices, _FORMS, strict=True):
                key = form(answer)
                if key or form is str:
                    indices.setdefault(key, index)

    def __len__(self) -> int:
        return len(self.answers)

    def find(self, answer: str) -> int | None:
        """The index of an answer, None where the table lacks it."""
        for indices, form in zip(self._indices, _FORMS, strict=True):
            if (index := indices.get(form(answer))) is not None:
                return index
        return None
