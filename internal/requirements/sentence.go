package requirements

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// Sentence is a sentence of a text that binds.
type Sentence struct {
	Section string // the heading above
	Text    string // without markup
	Print   string // a hash of its words; the n-th one with the same words has "~n" behind it
}

var (
	binding      = regexp.MustCompile(`\b(MUST|SHOULD|SHALL|REQUIRED)\b`)
	bindingLower = regexp.MustCompile(`(?i)\b(MUST|SHOULD|SHALL|REQUIRED)\b`)

	fence   = regexp.MustCompile("^\\s*(>\\s*)?(```|~~~)")
	heading = regexp.MustCompile(`^#{1,6}\s+(.*?)\s*#*$`)
	rule    = regexp.MustCompile(`^([=\-~^"'+*_#` + "`" + `])\s?(?:[=\-~^"'+*_#` + "`" + `]\s?){2,}$`)
	item    = regexp.MustCompile(`^\s*(?:[-*+]|#\.|[0-9A-Za-z][.)])\s+`)
	remark  = regexp.MustCompile(`^\s*(?://+|/\*+|\*/|\*|#)\s?`)
	image   = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	link    = regexp.MustCompile(`\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])`)
	rstLink = regexp.MustCompile("`([^`<]*)\\s*<[^>]*>`_+")
	note    = regexp.MustCompile(`\[\^[^\]]*\]:?`)
	tag     = regexp.MustCompile(`</?[a-z][^>]*>`)
	markup  = strings.NewReplacer("`", "", "*", "", `\`, "")
	short   = regexp.MustCompile(`(?:\b(?:e\.g|i\.e|etc|vs|cf|[A-Z])\.|\.\.)$`)
)

// Sentences returns the sentences of a Markdown or reStructuredText file that have one of the words
// MUST, SHOULD, SHALL and REQUIRED, in their order. Paragraphs, items of lists and cells of tables
// are read; of blocks of code only the comments, since interfaces say there what they ask for. Left
// out are the changelog, which tells what sentences said once, and the sentence that explains the
// words. With lowercase the words bind in lower case, too.
func Sentences(text string, lowercase bool) []Sentence {
	words := binding
	if lowercase {
		words = bindingLower
	}
	var found []Sentence
	seen := map[string]int{}
	for _, b := range blocks(text) {
		if strings.EqualFold(strings.ReplaceAll(b.section, " ", ""), "changelog") {
			continue
		}
		for _, s := range split(plain(b.text)) {
			if !words.MatchString(s) || strings.Contains(s, "RFC 2119") {
				continue
			}
			print := fingerprint(s)
			if seen[print]++; seen[print] > 1 {
				print += fmt.Sprintf("~%d", seen[print])
			}
			found = append(found, Sentence{Section: b.section, Text: s, Print: print})
		}
	}
	return found
}

var day = regexp.MustCompile(`\b20[0-9]{2}-[01][0-9]-[0-3][0-9]\b`)

// Changed returns the newest date in a text's list of changes, "" if there is none.
func Changed(text string) string {
	newest := ""
	for _, b := range blocks(text) {
		if strings.EqualFold(strings.ReplaceAll(b.section, " ", ""), "changelog") {
			newest = max(newest, day.FindString(b.text))
		}
	}
	return newest
}

type block struct{ section, text string }

// blocks cuts a text into paragraphs, items, cells and comments.
func blocks(text string) []block {
	var out []block
	section, pending := "", []string(nil)
	flush := func() {
		if len(pending) > 0 {
			out = append(out, block{section, strings.Join(pending, " ")})
		}
		pending = nil
	}
	code, literal := false, -1 // inside of a fence; the indentation that ends a literal block
	for line := range strings.Lines(strings.ReplaceAll(text, "\r\n", "\n")) {
		line = strings.TrimRight(line, "\n\t ")
		body := strings.TrimSpace(line)
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		if fence.MatchString(line) {
			flush()
			code = !code
			continue
		}
		if literal >= 0 && body != "" && indent <= literal {
			flush()
			literal = -1
		}
		if code || literal >= 0 {
			if mark := remark.FindString(line); mark != "" && len(mark) < len(line) {
				pending = append(pending, line[len(mark):])
			} else {
				flush()
			}
			continue
		}
		body = strings.TrimSpace(strings.TrimPrefix(body, ">"))
		switch m := heading.FindStringSubmatch(body); {
		case body == "":
			flush()
		case m != nil:
			flush()
			section = plain(m[1])
		case rule.MatchString(body):
			if len(pending) == 1 && indent == 0 && !strings.HasPrefix(pending[0], "-") {
				section, pending = plain(pending[0]), nil
			}
			flush()
		case strings.HasPrefix(body, "|"):
			flush()
			for cell := range strings.SplitSeq(strings.ReplaceAll(body, `\|`, " "), "|") {
				pending = append(pending, cell)
				flush()
			}
		default:
			if mark := item.FindString(body); mark != "" {
				flush()
				body = body[len(mark):]
			}
			pending = append(pending, body)
			if strings.HasSuffix(body, "::") {
				flush()
				literal = indent
			}
		}
	}
	flush()
	return out
}

// plain takes markup away.
func plain(text string) string {
	text = image.ReplaceAllString(text, "")
	text = note.ReplaceAllString(text, "")
	text = link.ReplaceAllString(text, "$1")
	text = rstLink.ReplaceAllString(text, "$1")
	text = tag.ReplaceAllString(text, "")
	return strings.Join(strings.Fields(markup.Replace(text)), " ")
}

// split cuts a paragraph into sentences. One ends in a full stop, a question or an exclamation mark
// before a space and no small letter.
func split(text string) []string {
	var out []string
	start := 0
	for i := 0; i < len(text); i++ {
		if !strings.ContainsRune(".?!", rune(text[i])) {
			continue
		}
		end := i + 1
		for end < len(text) && strings.ContainsRune(`)"'_`, rune(text[end])) {
			end++
		}
		if end+1 >= len(text) || text[end] != ' ' || short.MatchString(text[start:i+1]) ||
			unicode.IsLower(rune(text[end+1])) {
			continue
		}
		out = append(out, strings.TrimSpace(text[start:end]))
		start, i = end, end
	}
	if rest := strings.TrimSpace(text[start:]); rest != "" {
		out = append(out, rest)
	}
	return out
}

// fingerprint hashes the letters and digits of a sentence.
func fingerprint(sentence string) string {
	words := strings.FieldsFunc(sentence, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	sum := sha256.Sum256([]byte(strings.Join(words, " ")))
	return hex.EncodeToString(sum[:4])
}
