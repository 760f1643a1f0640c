package expr

// $regexMatch, $regexFind and $regexFindAll.

import (
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/pcre"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, name := range []string{"$regexMatch", "$regexFind", "$regexFindAll"} {
		registerNamed(&namedOp{
			name:      name,
			notObject: parseError{51103, "%s expects an object of named arguments but found: %s", 2},
			unknown:   parseError{31024, "%s found an unknown argument: %s", 2},
			params: []parameter{
				{"input", &parseError{31022, "%s requires 'input' parameter", 3}},
				{"regex", &parseError{31023, "%s requires 'regex' parameter", 3}},
				{"options", nil},
			},
			foldOn:  []int{},
			prepare: prepareRegex,
			eval:    evalRegex,
		})
	}
}

// compiledRegex is what constant operands were compiled to; re is nil if the expression is null.
type compiledRegex struct{ re *pcre.Regexp }

func prepareRegex(n *named, env *Env) error {
	for _, e := range n.args[1:] {
		if _, ok := e.(*constant); e != nil && !ok {
			return nil
		}
	}
	regex, options, err := regexArguments(NewState(env), n)
	if err != nil {
		return err
	}
	n.data, err = compileRegex(n.op.name, regex, options, env)
	return err
}

// regexArguments evaluates the pattern and the options.
func regexArguments(st *State, n *named) (regex, options bson.RawValue, err error) {
	if regex, err = n.arg(st, 1); err == nil {
		options, err = n.arg(st, 2)
	}
	return regex, options, err
}

func compileRegex(name string, regex, options bson.RawValue, env *Env) (*compiledRegex, error) {
	var pattern, flags string
	switch {
	case nullish(regex):
	case regex.Type == bson.TypeRegex:
		re, _ := regex.Regex()
		pattern, flags = re.Pattern, re.Options
	case isString(regex):
		pattern = text(regex)
		if strings.IndexByte(pattern, 0) >= 0 {
			return nil, srverr.New(51109, "%s: regular expression cannot contain an embedded null byte", name)
		}
	default:
		return nil, srverr.New(51105, "%s needs 'regex' to be of type string or regex", name)
	}
	if !nullish(options) {
		switch {
		case !isString(options):
			return nil, srverr.New(51106, "%s needs 'options' to be of type string", name)
		case flags != "":
			return nil, srverr.New(51107, "%s: found regex option(s) specified in both 'regex' and 'option' fields",
				name)
		}
		flags = text(options)
		if strings.IndexByte(flags, 0) >= 0 {
			return nil, srverr.New(51110, "%s: regular expression options cannot contain an embedded null byte", name)
		}
	}
	for _, f := range flags {
		if !strings.ContainsRune("imsxu", f) || f == 'u' && !env.Version.AtLeast(6, 1) {
			return nil, srverr.New(51108, "%s invalid flag in regex options: %c", name, f)
		}
	}
	if nullish(regex) {
		return &compiledRegex{}, nil
	}
	limit := pcre.MaxPattern
	if env.Version.AllParsed() {
		limit = pcre.MaxPatternParsed
	}
	if len(pattern) > limit {
		return nil, srverr.New(51111, "Invalid Regex in %s: %s", name, pcre.TooLong)
	}
	re, err := pcre.Compile(pattern, flags)
	if err != nil {
		return nil, srverr.New(51111, "Invalid Regex in %s: %s", name, err)
	}
	return &compiledRegex{re}, nil
}

// maxRegexOutput is how many bytes of matches one expression may yield.
const maxRegexOutput = 64 << 20

func evalRegex(st *State, n *named) (bson.RawValue, error) {
	name := n.op.name
	none := null
	switch name {
	case "$regexMatch":
		none = falseValue
	case "$regexFindAll":
		none = newArray().value()
	}
	in, err := n.arg(st, 0)
	if err != nil {
		return missing, err
	}
	c, ok := n.data.(*compiledRegex)
	var regex, options bson.RawValue
	if !ok {
		if regex, options, err = regexArguments(st, n); err != nil {
			return missing, err
		}
	}
	if !nullish(in) && !isString(in) {
		return missing, srverr.New(51104, "%s needs 'input' to be of type string", name)
	}
	if !ok {
		if c, err = compileRegex(name, regex, options, st.env); err != nil {
			return missing, err
		}
	}
	if nullish(in) || c.re == nil {
		return none, nil
	}
	s, _ := in.StringBytes()
	find := func(from int) ([]int, error) {
		loc, err := c.re.FindCounted(s, from, st.Do)
		if err != nil {
			err = srverr.New(
				51156, "Error occurred while executing the regular expression in %s. Result code: -8", name)
		}
		return loc, err
	}
	if name == "$regexMatch" {
		loc, err := find(0)
		return boolValue(loc != nil), err
	}
	out, size := newArray(), 0
	for from, codePoints := 0, 0; ; {
		loc, err := find(from)
		if err != nil {
			return missing, err
		}
		if loc == nil {
			break
		}
		codePoints += utf8.RuneCount(s[from:loc[0]])
		found := matchDocument(s, loc, codePoints)
		if size += len(found.Value); size > maxRegexOutput {
			return missing, srverr.New(51151, "%s: the size of buffer to store output exceeded the 64MB limit", name)
		}
		if name == "$regexFind" {
			return found, nil
		}
		out.add(found)
		if from = loc[1]; loc[0] == loc[1] { // an empty match: on to the next character
			if from >= len(s) {
				break
			}
			_, size := utf8.DecodeRune(s[from:])
			from += size
			codePoints++
		} else {
			codePoints += utf8.RuneCount(s[loc[0]:loc[1]])
		}
		if from >= len(s) {
			break
		}
		if err := st.step(); err != nil {
			return missing, err
		}
	}
	if name == "$regexFind" {
		return null, nil
	}
	return out.value(), nil
}

func matchDocument(s []byte, loc []int, codePoints int) bson.RawValue {
	_, dst := bson.BeginDocument(nil)
	dst = bson.AppendString(dst, "match", string(s[loc[0]:loc[1]]))
	dst = bson.AppendInt32(dst, "idx", int32(codePoints))
	captures := newArray()
	for i := 2; i+1 < len(loc); i += 2 {
		if loc[i] < 0 {
			captures.add(null)
		} else {
			captures.add(bsondoc.StringValue(string(s[loc[i]:loc[i+1]])))
		}
	}
	dst = bson.AppendRawValue(dst, "captures", captures.value())
	return bsondoc.DocumentValue(bson.EndDocument(dst, 0))
}
