package analysis

// Words by the rules of the Unicode Standard's annex 29, as Lucene's standard tokenizer applies
// them: ideographs and hiragana one by one, words of scripts that are written without spaces as a
// whole, and nothing that has neither a letter nor a digit.

import "unicode"

// wordClass is what a character is for the rules.
type wordClass uint8

const (
	wordOther wordClass = iota
	wordExtend
	wordLetter
	wordHebrew
	wordNumeric
	wordKatakana
	wordConnector
	wordMidLetter
	wordMidNum
	wordMidNumLet
	wordSingleQuote
	wordDoubleQuote
	wordIdeograph
	wordHiragana
	wordComplex
	wordEmoji
)

// complexScripts are written without spaces between words.
var complexScripts = []*unicode.RangeTable{unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tai_Le,
	unicode.New_Tai_Lue, unicode.Tai_Tham}

func classOf(r rune) wordClass {
	if r < 0x80 {
		switch {
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
			return wordLetter
		case '0' <= r && r <= '9':
			return wordNumeric
		}
	}
	switch r {
	case '\'':
		return wordSingleQuote
	case '"':
		return wordDoubleQuote
	case '.', 0x2018, 0x2019, 0x2024, 0xfe52, 0xff07, 0xff0e:
		return wordMidNumLet
	case ':', 0xb7, 0x387, 0x55f, 0x5f4, 0x2027, 0xfe13, 0xfe55, 0xff1a:
		return wordMidLetter
	case ',', ';', 0x37e, 0x589, 0x60c, 0x60d, 0x66c, 0x7f8, 0x2044, 0xfe10, 0xfe14, 0xfe50, 0xfe54, 0xff0c, 0xff1b:
		return wordMidNum
	case 0x30fc, 0x309b, 0x309c, 0x30a0: // sound marks go with katakana
		return wordKatakana
	case 0x200d:
		return wordExtend
	}
	if r < 0x80 {
		if r == '_' {
			return wordConnector
		}
		return wordOther
	}
	switch {
	case unicode.In(r, complexScripts...) && !unicode.IsDigit(r):
		return wordComplex
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Mc):
		return wordExtend
	case unicode.Is(unicode.Cf, r) && r != 0x200b:
		return wordExtend
	case unicode.Is(unicode.Ideographic, r):
		return wordIdeograph
	case unicode.Is(unicode.Hiragana, r):
		return wordHiragana
	case unicode.Is(unicode.Katakana, r):
		return wordKatakana
	case unicode.Is(unicode.Hebrew, r) && unicode.IsLetter(r):
		return wordHebrew
	case unicode.IsDigit(r):
		return wordNumeric
	case unicode.IsLetter(r) || unicode.In(r, unicode.Nl, unicode.Other_Alphabetic):
		return wordLetter
	case unicode.Is(unicode.Pc, r):
		return wordConnector
	case r >= 0x1f300 && r <= 0x1faff || r >= 0x1f1e6 && r <= 0x1f1ff:
		return wordEmoji
	}
	return wordOther
}

func (c wordClass) letter() bool { return c == wordLetter || c == wordHebrew }

// inWord reports whether characters of a class make words with others.
func (c wordClass) inWord() bool {
	return c.letter() || c == wordNumeric || c == wordKatakana || c == wordConnector
}

// joins reports whether there is no break between two characters of a word.
func joins(a, b wordClass) bool {
	switch {
	case a == wordConnector || b == wordConnector:
		return a.inWord() && b.inWord()
	case a == wordKatakana || b == wordKatakana:
		return a == b
	}
	return (a.letter() || a == wordNumeric) && (b.letter() || b == wordNumeric)
}

// bridges reports whether a character between two others does not break their word.
func bridges(a, mid, b wordClass) bool {
	switch mid {
	case wordMidNumLet, wordSingleQuote:
		return a.letter() && b.letter() || a == wordNumeric && b == wordNumeric
	case wordMidLetter:
		return a.letter() && b.letter()
	case wordMidNum:
		return a == wordNumeric && b == wordNumeric
	case wordDoubleQuote:
		return a == wordHebrew && b == wordHebrew
	}
	return false
}

// words returns a tokenizer by the rules of words. A word of more than max characters is cut.
func words(max int) tokenizer {
	return func(c chars) []Token {
		var list []Token
		for i := 0; i < len(c.runes); {
			j, ok := c.word(i)
			if ok {
				list = c.pieces(list, i, j, max)
			}
			i = j
		}
		return list
	}
}

// pieces appends the token from i to j, in pieces of at most max characters.
func (c chars) pieces(list []Token, i, j, max int) []Token {
	for ; j-i > max; i += max {
		list = append(list, c.token(i, i+max, len(list)))
	}
	return append(list, c.token(i, j, len(list)))
}

// word returns the end of the word that begins at i, and whether it is one.
func (c chars) word(i int) (end int, ok bool) {
	first := classOf(c.runes[i])
	j := c.extended(i + 1)
	switch {
	case first == wordIdeograph || first == wordHiragana:
		return j, true
	case first == wordEmoji:
		for j < len(c.runes) && c.runes[j-1] == 0x200d && classOf(c.runes[j]) == wordEmoji {
			j = c.extended(j + 1)
		}
		return j, true
	case first == wordComplex:
		for j < len(c.runes) && classOf(c.runes[j]) == wordComplex {
			j = c.extended(j + 1)
		}
		return j, true
	case !first.inWord():
		return j, false
	}
	for last := first; j < len(c.runes); {
		next := classOf(c.runes[j])
		if joins(last, next) {
			ok = ok || next != wordConnector
			last, j = next, c.extended(j+1)
			continue
		}
		k := c.extended(j + 1)
		if k < len(c.runes) && bridges(last, next, classOf(c.runes[k])) {
			last, j = classOf(c.runes[k]), c.extended(k+1)
			continue
		}
		if last == wordHebrew && next == wordSingleQuote {
			j = k
		}
		break
	}
	return j, ok || first != wordConnector
}

// extended returns the first place from i on whose character does not belong to the one before.
func (c chars) extended(i int) int {
	for i < len(c.runes) && classOf(c.runes[i]) == wordExtend {
		i++
	}
	return i
}

// runs returns a tokenizer whose tokens are the longest runs of characters of a kind.
func runs(max int, is func(r rune) bool) tokenizer {
	return func(c chars) []Token {
		var list []Token
		for i := 0; i < len(c.runes); i++ {
			j := i
			for j < len(c.runes) && is(c.runes[j]) {
				j++
			}
			if j > i {
				list = c.pieces(list, i, j, max)
				i = j
			}
		}
		return list
	}
}

// whole is a tokenizer that leaves a text as it is.
func whole(c chars) []Token { return []Token{c.token(0, len(c.runes), 0)} }
