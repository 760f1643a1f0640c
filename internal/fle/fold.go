package fle

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// What a text field stores its tokens for must never change, or what was stored is not found any
// more. Folding follows Unicode 13 on the basic plane. What later versions added is listed here; a
// test fails when a new version of Go or of x/text knows more.

// newerCase are the letters whose case Unicode knows since version 14.
var newerCase = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x2C2F, Hi: 0x2C2F, Stride: 1}, {Lo: 0xA7C0, Hi: 0xA7C0, Stride: 1}, {Lo: 0xA7D0, Hi: 0xA7D0, Stride: 1},
		{Lo: 0xA7D6, Hi: 0xA7D8, Stride: 2},
	},
	R32: []unicode.Range32{{Lo: 0x10570, Hi: 0x10595, Stride: 1}},
}

// newerDiacritic are the marks that are diacritics since later versions.
var newerDiacritic = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0898, Hi: 0x089F, Stride: 1}, {Lo: 0x08C9, Hi: 0x08D2, Stride: 1}, {Lo: 0x0C3C, Hi: 0x0C3C, Stride: 1},
		{Lo: 0x1714, Hi: 0x1715, Stride: 1}, {Lo: 0x1ABE, Hi: 0x1ABE, Stride: 1}, {Lo: 0x1AC1, Hi: 0x1ACB, Stride: 1},
		{Lo: 0x1DFA, Hi: 0x1DFC, Stride: 1},
	},
}

// Fold returns s without the differences that a text field does not look at.
func Fold(s string, foldCase, foldDiacritics bool) string {
	if !foldCase && !foldDiacritics {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		if foldCase {
			r = foldRune(r)
		}
		if foldDiacritics {
			appendBare(&b, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// foldRune is Unicode's simple case folding: statuses C and S of CaseFolding.txt.
func foldRune(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	case r == 'İ' || r == 'ı': // fold to i in Turkish only
		return r
	case r >= 0x13A0 && r <= 0x13FD || r >= 0xAB70 && r <= 0xABBF: // Cherokee folds to upper case
		return unicode.ToUpper(r)
	case unicode.Is(newerCase, r):
		return r
	}
	return unicode.ToLower(unicode.ToUpper(r))
}

// appendBare appends r without its diacritics. A character that has none stays as it is, composed
// or not.
func appendBare(b *strings.Builder, r rune) {
	if diacritic(r) {
		return
	}
	// ANO TELEIA decomposes to a middle dot, which is a diacritic, and yet stays
	const ano = 0x0387
	if r < utf8.RuneSelf || r == ano || r >= 0xAC00 && r <= 0xD7A3 { // Hangul syllables stay
		b.WriteRune(r)
		return
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	parts := norm.NFD.Properties(buf[:n]).Decomposition()
	found := false
	for p := parts; len(p) > 0; {
		c, size := utf8.DecodeRune(p)
		found = found || diacritic(c)
		p = p[size:]
	}
	if !found {
		b.WriteRune(r)
		return
	}
	for p := parts; len(p) > 0; {
		c, size := utf8.DecodeRune(p)
		if !diacritic(c) {
			b.WriteRune(c)
		}
		p = p[size:]
	}
}

func diacritic(r rune) bool {
	return unicode.Is(unicode.Diacritic, r) && !unicode.Is(newerDiacritic, r)
}
