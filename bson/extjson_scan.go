package bson

// The lexical half of the Extended JSON reader: white space, literals, strings and numbers as RFC
// 8259 has them.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// An ExtJSONError reports where a text is not Extended JSON. For a text that ends early,
// errors.Is(err, io.ErrUnexpectedEOF) holds.
type ExtJSONError struct {
	Offset int64 // bytes before the place of the error, from the start of the text or stream
	Err    error // what is wrong there
}

// Error returns the place and what is wrong there.
func (e *ExtJSONError) Error() string {
	return fmt.Sprintf("bson: extended JSON: byte %d: %v", e.Offset, e.Err)
}

// Unwrap returns e.Err.
func (e *ExtJSONError) Unwrap() error { return e.Err }

func (r *extJSONReader) fail(offset int, err error) error {
	return &ExtJSONError{Offset: r.base + int64(offset), Err: err}
}

func (r *extJSONReader) failf(offset int, format string, args ...any) error {
	return r.fail(offset, fmt.Errorf(format, args...))
}

// unexpected is the error for the byte at the reader's position.
func (r *extJSONReader) unexpected(want string) error {
	if r.pos >= len(r.src) {
		return r.fail(len(r.src), io.ErrUnexpectedEOF)
	}
	c, size := utf8.DecodeRune(r.src[r.pos:])
	if c == utf8.RuneError && size == 1 {
		return r.failf(r.pos, "byte 0x%02X, want %s", r.src[r.pos], want)
	}
	return r.failf(r.pos, "%q, want %s", c, want)
}

// space skips white space and returns the byte after it, or 0 at the end of the text.
func (r *extJSONReader) space() byte {
	for ; r.pos < len(r.src); r.pos++ {
		if c := r.src[r.pos]; c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

// expect skips white space and then the byte c.
func (r *extJSONReader) expect(c byte, want string) error {
	if r.space() != c {
		return r.unexpected(want)
	}
	r.pos++
	return nil
}

// literal skips the text of true, false or null.
func (r *extJSONReader) literal(text string) error {
	if rest := r.src[r.pos:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return r.unexpected("a value")
	}
	r.pos += len(text)
	return nil
}

// plainRun returns where the run of bytes from i on ends that stand for themselves in a JSON
// string, or len(text), and whether they are all ASCII (it may say that they are not where
// something after them is not).
func plainRun(text []byte, i int) (end int, ascii bool) {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	var seen uint64
	for ; i+8 <= len(text); i += 8 {
		w := binary.LittleEndian.Uint64(text[i:])
		seen |= w
		quote, backslash := w^(ones*'"'), w^(ones*'\\')
		if m := ((w-ones*0x20)&^w | (quote-ones)&^quote | (backslash-ones)&^backslash) & highs; m != 0 {
			return i + bits.TrailingZeros64(m)/8, seen&highs == 0
		}
	}
	or := byte(0)
	for ; i < len(text) && escaped[text[i]] == 0; i++ {
		or |= text[i]
	}
	return i, seen&highs == 0 && or < utf8.RuneSelf
}

// appendString reads the string at the reader's position, which is on its opening quote, and
// appends its value.
func (r *extJSONReader) appendString(dst []byte) ([]byte, error) {
	i := r.pos + 1
	for {
		end, ascii := plainRun(r.src, i)
		if !ascii && !utf8.Valid(r.src[i:end]) {
			return dst, r.fail(i, errors.New("string is not valid UTF-8"))
		}
		dst = append(dst, r.src[i:end]...)
		if end == len(r.src) {
			return dst, r.fail(end, io.ErrUnexpectedEOF)
		}
		switch r.src[end] {
		case '"':
			r.pos = end + 1
			return dst, nil
		case '\\':
			var err error
			if dst, i, err = r.appendEscape(dst, end); err != nil {
				return dst, err
			}
		default:
			return dst, r.failf(end, "control character 0x%02X in a string", r.src[end])
		}
	}
}

// text reads the string at the reader's position and returns its value, which is valid until the
// next call.
func (r *extJSONReader) text() ([]byte, error) {
	start := r.pos + 1
	end, ascii := plainRun(r.src, start)
	if end < len(r.src) && r.src[end] == '"' && (ascii || utf8.Valid(r.src[start:end])) {
		r.pos = end + 1
		return r.src[start:end:end], nil
	}
	var err error
	r.buf, err = r.appendString(r.buf[:0])
	return r.buf, err
}

// appendEscape appends what the escape sequence at i stands for and returns where it ends.
func (r *extJSONReader) appendEscape(dst []byte, i int) ([]byte, int, error) {
	if i+1 >= len(r.src) {
		return dst, i, r.fail(len(r.src), io.ErrUnexpectedEOF)
	}
	c := r.src[i+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		unit, ok := r.hex4(i + 2)
		if !ok {
			return dst, i, r.fail(i, errors.New(`\u without four hexadecimal digits`))
		}
		end := i + 6
		if utf16.IsSurrogate(unit) {
			if end+1 >= len(r.src) || r.src[end] != '\\' || r.src[end+1] != 'u' {
				return dst, i, r.fail(i, errors.New("half a surrogate pair"))
			}
			low, _ := r.hex4(end + 2)
			if unit = utf16.DecodeRune(unit, low); unit == utf8.RuneError {
				return dst, i, r.fail(i, errors.New("half a surrogate pair"))
			}
			end += 6
		}
		return utf8.AppendRune(dst, unit), end, nil
	default:
		return dst, i, r.failf(i, "escape sequence \\%c", c)
	}
	return append(dst, c), i + 2, nil
}

func (r *extJSONReader) hex4(i int) (rune, bool) {
	if i+4 > len(r.src) {
		return 0, false
	}
	var u rune
	for _, c := range r.src[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		u = u<<4 | rune(c)
	}
	return u, true
}

// number reads the number at the reader's position. It returns the text, and whether that is an
// integer; if it is one in the range of int64, its value.
func (r *extJSONReader) number() (text []byte, integer, fits bool, n int64, err error) {
	src, i := r.src, r.pos
	negative := src[i] == '-'
	if negative {
		i++
	}
	first := i
	var u uint64
	for ; i < len(src) && src[i]-'0' <= 9; i++ {
		u = u*10 + uint64(src[i]-'0') // may overflow, then more than 18 digits tell
	}
	digits := i - first
	if digits == 0 {
		r.pos = i
		return nil, false, false, 0, r.unexpected("a value")
	}
	if digits > 1 && src[first] == '0' {
		return nil, false, false, 0, r.fail(first, errors.New("number starts with a superfluous 0"))
	}
	integer = true
	if i < len(src) && src[i] == '.' {
		integer = false
		i++
		fraction := i
		for ; i < len(src) && src[i]-'0' <= 9; i++ {
		}
		if i == fraction {
			r.pos = i
			return nil, false, false, 0, r.unexpected("a digit")
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		integer = false
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		exponent := i
		for ; i < len(src) && src[i]-'0' <= 9; i++ {
		}
		if i == exponent {
			r.pos = i
			return nil, false, false, 0, r.unexpected("a digit")
		}
	}
	text, r.pos = src[r.pos:i], i
	if !integer {
		return text, false, false, 0, nil
	}
	if digits > 18 {
		n, err := strconv.ParseInt(string(text), 10, 64)
		return text, true, err == nil, n, nil
	}
	n = int64(u)
	if negative {
		n = -n
	}
	return text, true, true, n, nil
}
