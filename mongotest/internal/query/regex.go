package query

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/pcre"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
	"allium/mongotest/internal/work"
)

// Codes of the server that have no name.
const (
	codeInvalidRegex        = 51091
	codeOptionsBeforeRegex  = 51074
	codeOptionsAfterRegex   = 51075
	codeInvalidRegexOptions = 51108
)

// regexTest is $regex and a regular expression in the place of a value: it matches strings, and
// regular expressions that are equal to it.
type regexTest struct {
	re      *pcre.Regexp
	pattern string
	options string
	work    *work.Meter
}

func newRegexTest(pattern, options string, v release.Version, m *work.Meter) (*regexTest, error) {
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, badValue("Regular expression cannot contain an embedded null byte")
	}
	if strings.IndexByte(options, 0) >= 0 {
		return nil, badValue("Regular expression options string cannot contain an embedded null byte")
	}
	longest := pcre.MaxPattern - 3 // it is compiled a second time, in a group
	switch {
	case v.AllParsed():
		longest = pcre.MaxPatternParsed
	case v.AtLeast(6, 1): // with another library
		longest = pcre.MaxPattern
	}
	if len(pattern) > longest {
		return nil, srverr.New(codeInvalidRegex, "Regular expression is invalid: %s", pcre.TooLong)
	}
	re, err := pcre.Compile(pattern, options)
	if err == nil {
		// The server also compiles the pattern in a group of its own, which a comment or a
		// quotation at its end swallows.
		settings, rest := pcre.Settings(pattern)
		_, err = pcre.Compile(settings+"(?:"+rest+`)\z`, options)
	}
	if err != nil {
		return nil, srverr.New(codeInvalidRegex, "Regular expression is invalid: %s", err)
	}
	return &regexTest{re: re, pattern: pattern, options: options, work: m}, nil
}

func newRegexTestFromValue(val bson.RawValue, v release.Version, m *work.Meter) (*regexTest, error) {
	re, _ := val.Regex()
	return newRegexTest(re.Pattern, re.Options, v, m)
}

func (t *regexTest) test(v bson.RawValue) (bool, int) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		return t.re.MatchCounted(stringData(v), t.work.Count()), noIndex
	case bson.TypeRegex:
		re, _ := v.Regex()
		return re.Pattern == t.pattern && re.Options == t.options, noIndex
	}
	return false, noIndex
}

func (p *filterParser) regexLeaf(field string, v bson.RawValue) (node, error) {
	t, err := newRegexTestFromValue(v, p.version, p.work)
	if err != nil {
		return nil, err
	}
	return p.leaf(field, t), nil
}

// parseRegexOperators parses {$regex: ..., $options: ...}, in any order.
func (p *filterParser) parseRegexOperators(c condition) (node, error) {
	var pattern, options string
	for key, v := range c.ops.All() {
		switch key {
		case "$regex":
			switch v.Type {
			case bson.TypeString:
				pattern, _ = v.StringValue()
			case bson.TypeRegex:
				re, _ := v.Regex()
				pattern = re.Pattern
				if re.Options != "" {
					if options != "" {
						return nil, srverr.New(codeOptionsBeforeRegex, "options set in both $regex and $options")
					}
					options = re.Options
				}
			default:
				return nil, badValue("$regex has to be a string")
			}
		case "$options":
			s, ok := v.StringValue()
			if !ok {
				return nil, badValue("$options has to be a string")
			}
			if options != "" {
				return nil, srverr.New(codeOptionsAfterRegex, "options set in both $regex and $options")
			}
			options = s
		}
	}
	if p.version.AtLeast(5, 0) {
		for _, flag := range options {
			if flag == 0 {
				break // which has an error of its own
			}
			if !strings.ContainsRune("imsxu", flag) {
				return nil, srverr.New(codeInvalidRegexOptions, " invalid flag in regex options: %c", flag) // sic
			}
		}
	}
	t, err := newRegexTest(pattern, options, p.version, p.work)
	if err != nil {
		return nil, err
	}
	return p.leaf(c.field, t), nil
}
