"""Everything medlink raises on purpose.

MedlinkError
├── SourceError            a terminology or corpus file cannot be read as it is
├── StoreError             the SQL store is missing, unreachable or of another schema version
├── UnknownValueError      a name that must be one of a known set (source, semantic type, recipe, build) is not
├── UnknownConceptError    no such concept in this knowledge base
├── UnknownIdError         no such job, index build or correction
├── JobError               a job cannot be asked for or cancelled as things are
├── BuildInUseError        the active index build is not removed
├── KeyReusedError         a request under the idempotency key of another one
├── LeaseLostError         a worker no longer holds the job that it was at
├── CurationError          a correction of the knowledge base that is blank or contradicts one in force
├── MentionError           a mention that cannot be linked as sent (NUL, lone surrogate, too long)
├── EncoderError           an encoder directory is damaged, incomplete or not exportable
├── IndexMismatchError     an index build is damaged, or was made by something else than it says
├── NoIndexError           there is no active index build to answer from
├── NotCalibratedError     a threshold on probability was asked of a build that has no calibration
├── LimitError             a request is larger than a documented limit
├── OverloadedError        the queue of mentions to link is full
├── NotServingError        the service is stopping, or what links has died
└── DeadlineError          a request took longer than it may

HTTP lives in `app/errors.py` only. No message carries mention text: it is patient data.
"""


class MedlinkError(Exception):
    """Root of the tree; the text says what happened and what to do next."""


class SourceError(MedlinkError):
    """A terminology or corpus file cannot be read as it is; names the file and, where there is one, the line."""

    def __init__(self, message: str, *, file: str, line: int | None = None) -> None:
        super().__init__(f"{file}:{line}: {message}" if line is not None else f"{file}: {message}")
        self.file = file
        self.line = line


class StoreError(MedlinkError):
    """The SQL store is missing, unreachable or of another schema version."""


class UnknownValueError(MedlinkError):
    """A name that must be one of a known set is not; the text lists the valid ones."""

    def __init__(self, kind: str, value: str, valid: list[str]) -> None:
        shown = ", ".join(valid[:40]) + (f", ... ({len(valid)} in all)" if len(valid) > 40 else "")
        super().__init__(f"unknown {kind} {value!r}; valid: {shown or 'none'}")
        self.kind = kind
        self.value = value
        self.valid = valid


class UnknownConceptError(MedlinkError):
    """No such concept in this knowledge base."""


class UnknownIdError(MedlinkError):
    """No such job, index build or correction; does not repeat what was asked for."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"there is no such {kind}")


class JobError(MedlinkError):
    """A job cannot be asked for or cancelled as things are; `job` is the id of the one in the way."""

    def __init__(self, message: str, *, job: str | None = None) -> None:
        super().__init__(message)
        self.job = job


class KeyReusedError(MedlinkError):
    """A request came under an idempotency key with which its sender asked for something else before."""


class BuildInUseError(MedlinkError):
    """The active index build is not removed."""


class LeaseLostError(MedlinkError):
    """A worker no longer holds the job that it was at; another may be at work."""


class CurationError(MedlinkError):
    """A correction that is blank, says what another says already, or contradicts it; never quotes its text."""


class MentionError(MedlinkError):
    """A mention that cannot be linked as sent; names the item, never its text."""

    def __init__(self, message: str, *, item: int) -> None:
        super().__init__(f"mention {item}: {message}")
        self.item = item
        self.problem = message


class EncoderError(MedlinkError):
    """An encoder directory is damaged, incomplete or not exportable."""


class IndexMismatchError(MedlinkError):
    """An index build is damaged, or was made by something else than it says."""


class NoIndexError(MedlinkError):
    """There is no active index build to answer from."""


class NotCalibratedError(MedlinkError):
    """A threshold on probability was asked of a build that has no calibration."""


class LimitError(MedlinkError):
    """A request is larger than a documented limit; the text says which and how large it may be."""


class OverloadedError(MedlinkError):
    """The queue of mentions to link has no room; says after how many seconds it may have."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NotServingError(MedlinkError):
    """The service is stopping, or the thread that links has died."""


class DeadlineError(MedlinkError):
    """A request took longer than it may."""
