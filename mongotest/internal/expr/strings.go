package expr

// String operators. "CP" counts code points, "Bytes" counts bytes of the UTF-8 encoding.

import (
	"bytes"
	"math"
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	registerNary(
		&naryOp{name: "$concat", arity: any0, associative: true, operand: concatenated, eval: evalConcat},
		&naryOp{name: "$toUpper", arity: exactly(1), eval: mapASCII('a', 'z')},
		&naryOp{name: "$toLower", arity: exactly(1), eval: mapASCII('A', 'Z')},
		&naryOp{name: "$strLenBytes", arity: exactly(1),
			eval: strLen("$strLenBytes", 34473, func(s string) int { return len(s) })},
		&naryOp{name: "$strLenCP", arity: exactly(1), eval: strLen("$strLenCP", 34471, codePoints)},
		&naryOp{name: "$strcasecmp", arity: exactly(2), eval: evalStrcasecmp},
		&naryOp{name: "$split", arity: exactly(2), eval: evalSplit},
		&naryOp{name: "$substrBytes", arity: exactly(3), eval: evalSubstrBytes},
		&naryOp{name: "$substrCP", arity: exactly(3), eval: evalSubstrCP},
		&naryOp{name: "$indexOfBytes", arity: arity{2, 4}, operand: searchedText("$indexOfBytes", 40091),
			eval: evalIndexOfBytes},
		&naryOp{name: "$indexOfCP", arity: arity{2, 4}, operand: searchedText("$indexOfCP", 40093),
			eval: evalIndexOfCP},
	)
	operators["$substr"] = operators["$substrBytes"] // an old name, the new one shows in messages
	for _, t := range []struct {
		name        string
		left, right bool
	}{{"$trim", true, true}, {"$ltrim", true, false}, {"$rtrim", false, true}} {
		registerNamed(&namedOp{
			name:      t.name,
			notObject: parseError{50696, "%s only supports an object as an argument, found %s", 2},
			unknown:   parseError{50694, "%s found an unknown argument: %s", 2},
			params:    []parameter{{"input", &parseError{50695, "%s requires an 'input' field", 3}}, {"chars", nil}},
			eval:      trimmer(t.name, t.left, t.right),
		})
	}
	for _, name := range []string{"$replaceOne", "$replaceAll"} {
		limit := -1
		if name == "$replaceOne" {
			limit = 1
		}
		registerNamed(&namedOp{
			name:      name,
			notObject: parseError{51751, "%s requires an object as an argument, found: %s", 2},
			unknown:   parseError{51750, "%s found an unknown argument: %s", 2},
			params: []parameter{
				{"input", &parseError{51749, "%s requires 'input' to be specified", 3}},
				{"find", &parseError{51748, "%s requires 'find' to be specified", 3}},
				{"replacement", &parseError{51747, "%s requires 'replacement' to be specified", 3}},
			},
			foldOn: []int{},
			eval:   replacer(name, limit),
		})
	}
}

func concatenated(_ *State, args []bson.RawValue, _ int) (done bool, err error) {
	v := args[len(args)-1]
	if !isString(v) && !nullish(v) {
		return false, srverr.New(16702, "$concat only supports strings, not %s", typeName(v))
	}
	return nullish(v), nil
}

func evalConcat(_ *State, args []bson.RawValue) (bson.RawValue, error) {
	var b []byte
	for _, v := range args {
		s, _ := v.StringBytes()
		b = append(b, s...)
		if len(b) > maxResult {
			return missing, tooLarge()
		}
	}
	return bsondoc.StringValue(string(b)), nil
}

// maxResult bounds strings and arrays that expressions build, so that a client cannot exhaust the
// memory: the size that the server allows for values inside of a pipeline.
const maxResult = 64 << 20

func tooLarge() error {
	return srverr.New(srverr.ExceededMemoryLimit, "expression result is larger than the limit of %d bytes", maxResult)
}

func mapASCII(from, to byte) func(*State, []bson.RawValue) (bson.RawValue, error) {
	return func(st *State, args []bson.RawValue) (bson.RawValue, error) {
		s, err := coerceToString(st.env.Version, args[0])
		if err != nil {
			return missing, err
		}
		b := []byte(s)
		for i, c := range b {
			if c >= from && c <= to {
				b[i] = c ^ 0x20
			}
		}
		return bsondoc.StringValue(string(b)), nil
	}
}

func strLen(name string, code int32, count func(string) int) func(*State, []bson.RawValue) (bson.RawValue, error) {
	return func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
		if !isString(args[0]) {
			return missing, srverr.New(code, "%s requires a string argument, found: %s", name, typeName(args[0]))
		}
		return bsondoc.Int32Value(int32(count(text(args[0])))), nil
	}
}

// codePoints counts the bytes that begin a code point, also in a text that is not UTF-8.
func codePoints(s string) (n int) {
	for i := range len(s) {
		if s[i]&0xC0 != 0x80 {
			n++
		}
	}
	return n
}

func upperASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 32
		}
		return r
	}, s)
}

func evalStrcasecmp(st *State, args []bson.RawValue) (bson.RawValue, error) {
	a, err := coerceToString(st.env.Version, args[0])
	if err != nil {
		return missing, err
	}
	b, err := coerceToString(st.env.Version, args[1])
	if err != nil {
		return missing, err
	}
	return bsondoc.Int32Value(int32(strings.Compare(upperASCII(a), upperASCII(b)))), nil
}

func evalSplit(st *State, args []bson.RawValue) (bson.RawValue, error) {
	in, sep := args[0], args[1]
	switch {
	case nullish(in) || nullish(sep):
		return null, nil
	case !isString(in):
		return missing, srverr.New(
			40085, "$split requires an expression that evaluates to a string as a first argument, found: %s",
			typeName(in))
	case !isString(sep):
		return missing, srverr.New(
			st.code(40086, 10503900), "$split requires an expression that evaluates to a string as a second argument, found: %s",
			typeName(sep))
	case text(sep) == "":
		return missing, srverr.New(40087, "$split requires a non-empty separator")
	}
	b := newArray()
	for part := range strings.SplitSeq(text(in), text(sep)) {
		b.add(bsondoc.StringValue(part))
	}
	return b.value(), nil
}

func evalSubstrBytes(st *State, args []bson.RawValue) (bson.RawValue, error) {
	modern := st.env.Version.AtLeast(5, 0)
	s, err := coerceToString(st.env.Version, args[0])
	if err != nil {
		return missing, err
	}
	if !args[1].IsNumber() || args[1].Type == bson.TypeDecimal128 && !modern {
		return missing, srverr.New(16034, "$substrBytes:  starting index must be a numeric type (is BSON type %s)",
			typeName(args[1]))
	}
	if !args[2].IsNumber() || args[2].Type == bson.TypeDecimal128 && !modern {
		return missing, srverr.New(16035, "$substrBytes:  length must be a numeric type (is BSON type %s)",
			typeName(args[2]))
	}
	start, err := coerceToLong(args[1])
	if err != nil {
		return missing, err
	}
	n, err := coerceToLong(args[2])
	if err != nil {
		return missing, err
	}
	if start < 0 {
		return missing, srverr.New(50752, "$substrBytes:  starting index must be non-negative (got: %d)", start)
	}
	continuation := func(i int64) bool { return i < int64(len(s)) && s[i]&0xc0 == 0x80 }
	if continuation(start) {
		return missing, srverr.New(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.")
	}
	if start >= int64(len(s)) {
		return bsondoc.StringValue(""), nil
	}
	end := int64(len(s))
	if n >= 0 && n < end-start {
		end = start + n
	}
	if continuation(end) {
		return missing, srverr.New(28657,
			"$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.")
	}
	return bsondoc.StringValue(s[start:end]), nil
}

func evalSubstrCP(st *State, args []bson.RawValue) (bson.RawValue, error) {
	s, err := coerceToString(st.env.Version, args[0])
	if err != nil {
		return missing, err
	}
	start, n := args[1], args[2]
	switch {
	case !start.IsNumber():
		return missing, srverr.New(34450, "$substrCP: starting index must be a numeric type (is BSON type %s)",
			typeName(start))
	case !integral(start):
		return missing, srverr.New(34451,
			"$substrCP: starting index cannot be represented as a 32-bit integral value: %s", Text(start))
	case !n.IsNumber():
		return missing, srverr.New(34452, "$substrCP: length must be a numeric type (is BSON type %s)", typeName(n))
	case !integral(n):
		return missing, srverr.New(34453, "$substrCP: length cannot be represented as a 32-bit integral value: %s",
			Text(n))
	case toLong(n) < 0:
		return missing, srverr.New(34454, "$substrCP: length must be a nonnegative integer.")
	case toLong(start) < 0:
		return missing, srverr.New(34455, "$substrCP: the starting index must be nonnegative integer.")
	}
	skip := func(s string, n int64) string {
		for ; n > 0 && s != ""; n-- {
			_, size := utf8.DecodeRuneInString(s)
			s = s[size:]
		}
		return s
	}
	s = skip(s, toLong(start))
	return bsondoc.StringValue(s[:len(s)-len(skip(s, toLong(n)))]), nil
}

// searchedText looks at the operands of $indexOf... of a text one by one. code is for a text that
// is no string, the next one for what is searched.
func searchedText(name string, code int32) func(*State, []bson.RawValue, int) (bool, error) {
	return func(st *State, args []bson.RawValue, _ int) (done bool, err error) {
		switch v := args[len(args)-1]; len(args) {
		case 1:
			if !isString(v) && !nullish(v) {
				err = srverr.New(code, "%s requires a string as the first argument, found: %s", name, typeName(v))
			}
			return nullish(v), err
		case 2:
			if !isString(v) {
				err = srverr.New(code+1, "%s requires a string as the second argument, found: %s", name, typeName(v))
			}
		default:
			_, _, err = indexBounds(st, name, args[2:])
		}
		return false, err
	}
}

// indexBounds reads the optional start and end of $indexOf...; end is MaxInt64 where it is not
// given.
func indexBounds(st *State, name string, bounds []bson.RawValue) (start, end int64, err error) {
	end = math.MaxInt64
	wrong, negative := int32(40096), int32(40097)
	if name == "$indexOfArray" {
		wrong, negative = st.code(wrong, 9711600), st.code(negative, 9711601)
	}
	for i, v := range bounds {
		word := [...]string{"starting", "ending"}[i]
		if !integral(v) {
			return 0, 0, srverr.New(wrong, "%srequires an integral %s index, found a value of type: %s, with value: %s",
				name, word, typeName(v), Text(v))
		}
		n := toLong(v)
		if n < 0 {
			return 0, 0, srverr.New(negative, "%s requires a nonnegative %s index, found: %d", name, word, n)
		}
		if i == 0 {
			start = n
		} else {
			end = n
		}
	}
	return start, end, nil
}

func evalIndexOfBytes(st *State, args []bson.RawValue) (bson.RawValue, error) {
	s, token := text(args[0]), text(args[1])
	start, end, err := indexBounds(st, "$indexOfBytes", args[2:])
	if err != nil {
		return missing, err
	}
	end = min(end, int64(len(s)))
	if start > end || start > int64(len(s)) {
		return bsondoc.Int32Value(-1), nil
	}
	i := strings.Index(s[start:end], token)
	if i >= 0 {
		i += int(start)
	}
	return bsondoc.Int32Value(int32(i)), nil
}

func evalIndexOfCP(st *State, args []bson.RawValue) (bson.RawValue, error) {
	s, token := text(args[0]), text(args[1])
	start, end, err := indexBounds(st, "$indexOfCP", args[2:])
	if err != nil {
		return missing, err
	}
	if s == "" && token == "" {
		return bsondoc.Int32Value(0), nil
	}
	// The end bounds where the token may start, not where it ends.
	i := int64(0)
	for pos := range s {
		if i >= end {
			break
		}
		if i >= start && strings.HasPrefix(s[pos:], token) {
			return bsondoc.Int32Value(int32(i)), nil
		}
		i++
	}
	return bsondoc.Int32Value(-1), nil
}

// whitespace is what $trim removes unless told otherwise.
const whitespace = "\x00 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

func trimmer(name string, left, right bool) func(*State, *named) (bson.RawValue, error) {
	return func(st *State, n *named) (bson.RawValue, error) {
		in, err := n.arg(st, 0)
		if err != nil || nullish(in) {
			return null, err
		}
		if !isString(in) {
			return missing, srverr.New(50699, "%s requires its input to be a string, got %s (of type %s) instead.",
				name, Text(in), typeName(in))
		}
		set := whitespace
		if n.has(1) {
			chars, err := n.arg(st, 1)
			if err != nil || nullish(chars) {
				return null, err
			}
			if !isString(chars) {
				return missing, srverr.New(50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.",
					name, Text(chars), typeName(chars))
			}
			set = text(chars)
		}
		s := text(in)
		if left {
			s = strings.TrimLeft(s, set)
		}
		if right {
			s = strings.TrimRight(s, set)
		}
		return bsondoc.StringValue(s), nil
	}
}

func replacer(name string, limit int) func(*State, *named) (bson.RawValue, error) {
	return func(st *State, n *named) (bson.RawValue, error) {
		var parts [3]string
		var values [3]bson.RawValue
		for i := range values { // all of them, before any is looked at
			var err error
			if values[i], err = n.arg(st, i); err != nil {
				return missing, err
			}
		}
		anyNull := false
		for i, what := range []struct {
			name string
			code int32
		}{
			{"input", st.code(51746, 10503904)}, {"find", st.code(51745, 10503901)},
			{"replacement", st.code(51744, 10503902)},
		} {
			switch v := values[i]; {
			case nullish(v):
				anyNull = true
			case !isString(v):
				return missing, srverr.New(what.code, "%s requires that '%s' be a string, found: %s", name, what.name,
					Text(v))
			}
			parts[i] = text(values[i])
		}
		if anyNull {
			return null, nil
		}
		if limit < 0 && len(parts[0])+strings.Count(parts[0], parts[1])*len(parts[2]) > maxResult {
			return missing, tooLarge()
		}
		if parts[1] == "" && limit < 0 { // found before every byte, and at the end
			var b []byte
			for i := range len(parts[0]) {
				b = append(append(b, parts[2]...), parts[0][i])
			}
			return bsondoc.StringValue(string(append(b, parts[2]...))), nil
		}
		return bsondoc.StringValue(string(bytes.Replace([]byte(parts[0]), []byte(parts[1]), []byte(parts[2]), limit))),
			nil
	}
}
