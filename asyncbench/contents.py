"""The content of a file, told by its first bytes and not by its name; and its text, however it is packed."""

import bz2
import codecs
import gzip
import io
import lzma
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final, Literal, NamedTuple, cast

from asyncbench.errors import AsyncbenchError, ConfigError
from asyncbench.files import MOST_BYTES, home_expanded, local

HEAD: Final = 4096  # bytes that tell what a file is
LONGEST_LINE: Final = 16_000_000  # characters, of four bytes at most
PACKINGS: Final[Mapping[str, tuple[bytes, tuple[str, ...]]]] = {  # name → first bytes, endings
    "gzip": (b"\x1f\x8b", (".gz", ".gzip")),
    "zstd": (b"\x28\xb5\x2f\xfd", (".zst", ".zstd")),
    "bz2": (b"BZh", (".bz2",)),
    "xz": (b"\xfd7zXZ\0", (".xz",)),
    "lz4": (b"\x04\x22\x4d\x18", (".lz4",)),
}
PACKED_ENDINGS: Final = tuple(ending for _, endings in PACKINGS.values() for ending in endings)
BROKEN: Final = (
    EOFError,
    OSError,
    zlib.error,
    lzma.LZMAError,
)  # packed data that ends too early, or is wrong

# First bytes of files that asyncbench does not read: what it is, and the way out.
_AS_CSV: Final = "Save it as CSV (in Excel: CSV UTF-8), and name that file"
_TO_PARQUET: Final = "Read it with the program that wrote it, and save it as CSV or Parquet"
_UNPACK: Final = "Unpack it, and name the file with the questions"
_BY_PANDAS: Final = "Write its rows as CSV or Parquet, for example with pandas: .to_parquet(…)"
_SIGNATURES: Final[Mapping[bytes, tuple[str, str]]] = {
    b"PARE": ("Parquet with an encrypted footer", "Write it without encryption"),
    b"FEA1": ("Feather, version 1", "Write it as Parquet or as Feather, version 2"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("an old or encrypted Excel workbook", _AS_CSV),
    b"SQLite format 3\0": (
        "an SQLite database",
        "Export its table as CSV: sqlite3 -header -csv FILE 'SELECT …'",
    ),
    b"%PDF": ("a PDF document", "Copy its questions into a CSV file"),
    b"\x93NUMPY": ("a NumPy array", _BY_PANDAS),
    b"\x89HDF\r\n\x1a\n": ("an HDF5 file", _BY_PANDAS),
    b"ORC": ("an ORC file", _BY_PANDAS),
    b"Obj\x01": ("an Avro file", _BY_PANDAS),
    b"RDX2\n": ("data saved by R", "In R, write it by write.csv(…, row.names = FALSE)"),
    b"RDX3\n": ("data saved by R", "In R, write it by write.csv(…, row.names = FALSE)"),
    b"X\n\0\0\0": ("data saved by R", "In R, write it by write.csv(…, row.names = FALSE)"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", _UNPACK),
    b"Rar!": ("a RAR archive", _UNPACK),
    b"<stata_dta>": ("a Stata file", _TO_PARQUET),
    b"$FL2": ("an SPSS file", _TO_PARQUET),
    b"MATLAB 5.0": ("a MATLAB file", _TO_PARQUET),
    b"{\\rtf": ("a text document (RTF)", "Save its table as CSV"),
    b"\x89PNG": ("a picture", "Name the file with the questions"),
    b"\xff\xd8\xff": ("a picture", "Name the file with the questions"),
    b"version https://git-lfs": (
        "only a pointer of Git LFS to the file",
        "Fetch the file itself: git lfs pull",
    ),
    b"/annex/objects/": ("only a pointer of git-annex to the file", "Fetch the file itself: git annex get"),
}
_COLUMNS: Final = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}  # the last: a stream
_MARKUP: Final = re.compile(rb"\s*<(!doctype|html|head|body|script|\?xml|error|!--)", re.IGNORECASE)
_PICKLE: Final = re.compile(rb"\x80[\x02-\x05](?:\x95|\}|\]|\(|c|K|X|q|\x8c)")
_MEMBERS: Final = (  # of a zip: the beginning of a member's name tells what the whole is
    ("xl/", "an Excel workbook", _AS_CSV),
    ("Index/", "an Apple Numbers document", "Export it as CSV, and name that file"),
    ("word/", "a Word document", "Save its table as CSV"),
    ("content.xml", "a spreadsheet (OpenDocument)", "Save it as CSV, and name that file"),
)
_BOMS: Final = (  # that of UTF-32 begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_UTF_8: Final = "utf-8-sig"  # with or without its mark
_CONTROLS: Final = bytes({*range(32)} - {*b"\0\t\n\r\f\x1a\x1b"})


class Content(NamedTuple):
    """What a file holds."""

    form: str  # parquet, arrow, text
    packing: str | None = None  # a key of PACKINGS
    encoding: str = _UTF_8  # of text


def unpacked_name(path: PathLike[str] | str) -> Path:
    """Return a path without the ending that tells how it is packed: questions.csv for questions.csv.gz."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in PACKED_ENDINGS else path


def set_name(path: PathLike[str] | str) -> str:
    """Return the name of a file's problems in results: questions of questions.csv.gz."""
    return unpacked_name(path).stem


def content_of(path: Path, *, refuse: type[AsyncbenchError] = ConfigError) -> Content:
    """Return the content of a file.

    Raises:
        ConfigError, or what `refuse` says: it is empty, is packed badly, or holds something else; names what
            it is, and the way out.
        OSError: it cannot be read.
    """
    if stat.S_ISFIFO(path.stat().st_mode) or stat.S_ISCHR(path.stat().st_mode):
        raise refuse(f"{path}: this is a pipe or a device. A file is read several times: save it first.")
    with path.open("rb") as file:
        head = file.read(HEAD)
    packing = _packing(head)
    if packing is not None:
        try:
            with _unpacked(path, packing) as stream:
                head = stream.read(HEAD)
        except BROKEN as error:
            raise refuse(f"{path}: {_broken(packing, error)}") from None
    if not head:
        raise refuse(f"{path}: the file is empty. Download it or make it again.")
    form = _form(head)
    if form == "text":
        return Content(form, packing, _encoding(head))
    if form in ("parquet", "arrow") and packing is None:
        return Content(form)
    kind, way_out = _foreign(path, head, packing)
    raise refuse(f"{path}: this is {kind}, which asyncbench cannot read. {way_out}.")


def _packing(head: bytes) -> str | None:
    return next((name for name, (magic, _) in PACKINGS.items() if _begins(head, magic)), None)


def _form(head: bytes) -> str | None:
    """Return the format: parquet, arrow or text, or None for another one."""
    for magic, form in _COLUMNS.items():
        if _begins(head, magic):
            return form
    if _signed(head) or _MARKUP.match(head.removeprefix(codecs.BOM_UTF8)):
        return None
    if _encoding(head) != _UTF_8:
        return "text"
    odd = len(head) - len(head.translate(None, _CONTROLS + b"\0"))
    return "text" if odd * 20 <= len(head) else None


def _begins(head: bytes, magic: bytes) -> bool:
    """Return whether a file begins so, and is not a table whose first column is called PAR1 or ORC."""
    if not head.startswith(magic):
        return False
    words = magic.isalnum() and len(head) > len(magic)
    return not (words and _is_utf_8(head) and len(head) == len(head.translate(None, _CONTROLS + b"\0")))


def _signed(head: bytes) -> tuple[str, str] | None:
    """Return the form that a file's first bytes tell, and the way out if asyncbench does not read it."""
    for magic, description in _SIGNATURES.items():
        if _begins(head, magic):
            return description
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "a ZIP archive", _UNPACK
    if _PICKLE.match(head):
        return "a Python pickle", _BY_PANDAS
    if head[257:262] == b"ustar":
        return "a tar archive", _UNPACK
    if head[8:12] == b"DUCK":
        return "a DuckDB database", "Export its table: COPY t TO 'questions.parquet'"
    return None


def _foreign(path: Path, head: bytes, packing: str | None) -> tuple[str, str]:
    """Return the form of a file that asyncbench does not read, and the way out."""
    if any(_begins(head, magic) for magic in _COLUMNS):
        return f"a Parquet or Arrow file within {packing}", "Unpack it: such files are packed by themselves"
    if _packing(head) is not None:
        return f"a packed file within {packing}", "Unpack it once"
    if head.startswith(b"PK") and packing is None:
        # A ZIP archive: a workbook, arrays, or files.
        names: list[str] = []
        with suppress(zipfile.BadZipFile, OSError, ValueError), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        for beginning, kind, way_out in _MEMBERS:
            if any(name.startswith(beginning) for name in names):
                return kind, way_out
        if names and all(name.endswith(".npy") for name in names):
            return "an archive of NumPy arrays", _BY_PANDAS
        files = f" It holds {', '.join(names[:5])}{', …' if len(names) > 5 else ''}." if names else ""
        return "a ZIP archive", f"{_UNPACK}.{files}".removesuffix(".")
    if _MARKUP.match(head.removeprefix(codecs.BOM_UTF8)):
        if b"<?xml" in head[:100] and b"<html" not in head.lower():
            return "XML", "Save its table as CSV"
        return (
            "a web page (HTML)",
            "Perhaps it asks to log in. Download the file itself (the raw or download link)",
        )
    if (description := _signed(head)) is not None:
        return description
    return (
        f"no kind of file that is known (it begins with {head[:8]!r})",
        "Name a Parquet, Arrow, CSV, TSV or JSON file. If it was one, it is damaged: download it or make it "
        "again",
    )


def _encoding(head: bytes) -> str:
    """Return the encoding of text, by its mark or by where its zeros are."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    if b"\0" not in head:
        return _UTF_8
    sparse = head.count(b"\0") * 5 < len(head) and _is_utf_8(head)  # a stray NUL in UTF-8
    for encoding, width in (("utf-32-le", 4), ("utf-32-be", 4), ("utf-16-le", 2), ("utf-16-be", 2)):
        with suppress(UnicodeDecodeError):
            text = head[: len(head) // width * width - (width if len(head) == HEAD else 0)].decode(encoding)
            plain = all(sign.isprintable() or sign in "\t\r\n" for sign in text)
            if plain and not sparse and any(sign in text for sign in ",;\t\n{"):
                return encoding
    return _UTF_8


def _is_utf_8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


# ── text


@contextmanager
def _unpacked(path: Path, packing: str | None) -> Iterator[BinaryIO]:
    """Yield the bytes of a file as a stream that holds little of it at a time."""
    match packing:
        case None:
            with path.open("rb") as file:
                yield file
        case "gzip":
            with gzip.open(path) as file:
                yield cast("BinaryIO", file)
        case "bz2":
            with bz2.open(path) as file:
                yield cast("BinaryIO", file)
        case "xz":
            with lzma.open(path) as file:
                yield cast("BinaryIO", file)
        case _:
            import pyarrow as pa

            packing = cast("Literal['zstd', 'lz4']", packing)
            with pa.OSFile(str(path), "rb") as packed, pa.CompressedInputStream(packed, packing) as stream:
                yield cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", stream)))


def _broken(packing: str, error: BaseException) -> str:
    return f"its {packing} data is cut short or damaged ({error}). Download it or make it again."


def text_lines(path: Path, content: Content, *, refuse: type[AsyncbenchError] = ConfigError) -> Iterator[str]:
    """Yield the lines of a text file with their ends: \\n, \\r\\n, or \\r alone as on the first Macs.

    Raises:
        ConfigError, or what `refuse` says: a line is too long, or is not text in the file's encoding; or
            the packed data is damaged. Names the line.
        OSError: it cannot be read.
    """
    number = 0
    errors = "surrogateescape" if content.encoding == _UTF_8 else "surrogatepass"
    with _unpacked(local(path), content.packing) as stream:
        lines = io.TextIOWrapper(stream, content.encoding, errors, newline="")
        try:
            while line := lines.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise refuse(
                        f"{path}, line {number}: it has more than {LONGEST_LINE:,} bytes. Remove it."
                    )
                if content.encoding == _UTF_8:
                    _check_text(line)
                yield line
        except UnicodeDecodeError as error:
            is_utf_8 = content.encoding == _UTF_8
            here = number if is_utf_8 else number + 1  # that of UTF-8 is found after its line was read
            encoding = "UTF-8" if is_utf_8 else content.encoding.upper()
            raise refuse(
                f"{path}, line {here}: it is not {encoding} text (byte {error.start + 1:,}: "
                f"{error.reason}). Save it as UTF-8. Text of older Windows programs is converted by "
                f"`iconv -f WINDOWS-1252 -t UTF-8`."
            ) from None
        except BROKEN as error:
            if content.packing is None or isinstance(error, AsyncbenchError):
                raise
            raise refuse(f"{path}, line {number + 1}: {_broken(content.packing, error)}") from None
        finally:
            lines.detach()


def text_in(path: Path, *, max_size: int, way_out: str, refuse: type[AsyncbenchError] = ConfigError) -> str:
    """Return the text of a file that is small enough to be read as a whole.

    Raises:
        ConfigError, or what `refuse` says: it has more than `max_size` characters, or is no text.
        OSError: it cannot be read.
    """
    content = content_of(path, refuse=refuse)
    if content.form != "text":
        raise refuse(f"{path}: this is {content.form.capitalize()}, not text. {way_out}.")
    lines, size = list[str](), 0
    for line in text_lines(path, content, refuse=refuse):
        lines.append(line)
        size += len(line)
        if size > max_size:
            raise refuse(f"{path}: the file has more than {max_size:,} bytes. {way_out}.")
    return "".join(lines)


def text_of(path: Path, *, subject: str, way_out: str) -> str:
    """Return the text of a file that a person wrote, in UTF-8 or, as old Windows programs save it, UTF-16.

    Raises:
        ConfigError: it cannot be read, has too many bytes, is packed, or is no text; begins with `subject`.
    """
    try:
        with home_expanded(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)  # a device has no end
    except OSError as error:
        raise ConfigError(f"{subject}: {error.strerror}. {way_out}.") from None
    if len(data) > MOST_BYTES:
        raise ConfigError(f"{subject}: the file has more than {MOST_BYTES:,} bytes. {way_out}.")
    if packing := _packing(data[:HEAD]):
        raise ConfigError(f"{subject}: the file is packed ({packing}). Unpack it.")
    try:
        return data.decode(_encoding(data[:HEAD])).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{subject}: the file is not UTF-8 text (byte {error.start:,}: {error.reason}). Save it as UTF-8."
        ) from None


def _check_text(line: str) -> None:
    """Raise UnicodeDecodeError where bytes of a line were not UTF-8."""
    try:
        line.encode()
    except UnicodeEncodeError:
        line.encode("utf-8", "surrogateescape").decode()
