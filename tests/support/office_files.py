"""Small PDF and Word files."""

import io
import zipfile
from pathlib import Path

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def docx_of(body: str, path: Path, styles: str = "", footnotes: str = "") -> Path:
    """A Word file with this body, styles and footnotes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {_W}>{body}</w:document>")
        if styles:
            archive.writestr("word/styles.xml", f"<w:styles {_W}>{styles}</w:styles>")
        if footnotes:
            notes = f"<w:footnotes {_W}>{footnotes}</w:footnotes>"
            archive.writestr("word/footnotes.xml", notes)
    return path


def pdf_of(
    stream: bytes, path: Path, filters: bytes = b"", table: bytes = b"", *, num_pages: int = 1
) -> Path:
    """Pages with this content, where @ is the page's number, and a font with this table."""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding"
        + (b" /ToUnicode 4 0 R >>" if table else b" >>"),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(table), table),
    ]
    kids = []
    for number in range(1, num_pages + 1):
        own = stream.replace(b"@", b"%d" % number) if num_pages > 1 else stream
        kids.append(b"%d 0 R" % (len(objects) + 1))
        objects += [
            b"<< /Type /Page /Parent 2 0 R /Contents %d 0 R"
            b" /Resources << /Font << /F1 3 0 R >> >> >>" % (len(objects) + 2),
            b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(own), filters, own),
        ]
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), num_pages)
    out, places = io.BytesIO(), []
    out.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF"
    out.write(trailer % (len(objects) + 1, start))
    path.write_bytes(out.getvalue())
    return path
