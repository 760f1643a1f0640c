// Package terminal keeps what others sent from steering the terminal that it is printed on.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Writer writes text on, with every character that does not print escaped: control codes (C0 but
// for tab and line feed, DEL, C1), characters of format, among which are those that change the
// direction of text, separators of lines and paragraphs, and bytes that are not UTF-8. The escapes
// are those of JSON, such as \u001b, so that a string in a JSON text stays the same string.
//
// It is safe for concurrent use. A character may come in several writes.
type Writer struct {
	mu   sync.Mutex
	w    io.Writer
	part []byte // the beginning of a character whose rest has not come
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// IsTerminal reports whether the text goes to a terminal, or another device of characters.
func (w *Writer) IsTerminal() bool {
	f, ok := w.w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Binary returns where bytes go that are no text, such as an archive's, which must stay as they
// are. A terminal gets none.
func (w *Writer) Binary() (io.Writer, error) {
	if w.IsTerminal() {
		return nil, errors.New("the standard output is a terminal: send it to a file or a program")
	}
	return w.w, nil
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.part, p...)
	whole := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if !utf8.FullRune(text[len(text)-n:]) {
				whole -= n
			}
			break
		}
	}
	out := escape(nil, text[:whole])
	w.part = append([]byte(nil), text[whole:]...)
	if _, err := w.w.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the beginning of a character whose rest never came, as bytes that are not UTF-8.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.part) == 0 {
		return nil
	}
	out := escape(nil, w.part)
	w.part = nil
	_, err := w.w.Write(out)
	return err
}

func escape(dst, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, `\ufffd`...)
		case r == '\n' || r == '\t' || !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			dst = append(dst, text[:n]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			dst = fmt.Appendf(dst, `\u%04x\u%04x`, high, low)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		text = text[n:]
	}
	return dst
}
