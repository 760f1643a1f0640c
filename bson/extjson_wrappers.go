package bson

// The type wrappers of Extended JSON, {"$oid": "..."} and the like, as the reader takes them.

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"strconv"
)

// wrapper is a key that makes an object a type wrapper.
type wrapper uint8

const (
	notWrapper wrapper = iota
	wrapBinary
	wrapCode
	wrapDate
	wrapDBPointer
	wrapDecimal
	wrapDouble
	wrapInt
	wrapLong
	wrapMaxKey
	wrapMinKey
	wrapOID
	wrapRegex
	wrapScope
	wrapSymbol
	wrapTimestamp
	wrapUndefined
	wrapUUID
)

var wrapperKeys = [...]string{
	wrapBinary: "$binary", wrapCode: "$code", wrapDate: "$date", wrapDBPointer: "$dbPointer",
	wrapDecimal: "$numberDecimal",
	wrapDouble:  "$numberDouble", wrapInt: "$numberInt", wrapLong: "$numberLong", wrapMaxKey: "$maxKey",
	wrapMinKey: "$minKey",
	wrapOID:    "$oid", wrapRegex: "$regularExpression", wrapScope: "$scope", wrapSymbol: "$symbol",
	wrapTimestamp: "$timestamp", wrapUndefined: "$undefined", wrapUUID: "$uuid",
}

// wrapperOf returns which wrapper a key belongs to. $ref, $id and $db do not make one: an object
// with them stays a document (specification: Extended JSON, Parsers).
func wrapperOf(key []byte) wrapper {
	switch string(key) {
	case "$oid":
		return wrapOID
	case "$date":
		return wrapDate
	case "$numberInt":
		return wrapInt
	case "$numberLong":
		return wrapLong
	case "$numberDouble":
		return wrapDouble
	case "$numberDecimal":
		return wrapDecimal
	case "$binary":
		return wrapBinary
	case "$uuid":
		return wrapUUID
	case "$timestamp":
		return wrapTimestamp
	case "$regularExpression":
		return wrapRegex
	case "$code":
		return wrapCode
	case "$scope":
		return wrapScope
	case "$symbol":
		return wrapSymbol
	case "$dbPointer":
		return wrapDBPointer
	case "$minKey":
		return wrapMinKey
	case "$maxKey":
		return wrapMaxKey
	case "$undefined":
		return wrapUndefined
	}
	return notWrapper
}

// wrapper reads the rest of the object that starts at start, whose first key was w's, and appends
// the value.
func (r *extJSONReader) wrapper(w wrapper, start, depth int) (t Type, err error) {
	if err := r.expect(':', "':'"); err != nil {
		return 0, err
	}
	r.space()
	switch w {
	case wrapOID:
		t, err = TypeObjectID, r.wrappedOID()
	case wrapSymbol:
		if r.space() != '"' {
			return 0, r.wrongType(w, "a string")
		}
		t, err = TypeSymbol, r.stringValue()
	case wrapInt, wrapLong, wrapDouble, wrapDecimal:
		t, err = r.wrappedNumber(w)
	case wrapDate:
		t, err = TypeDateTime, r.wrappedDate()
	case wrapBinary:
		t, err = TypeBinary, r.wrappedBinary()
	case wrapUUID:
		t, err = TypeBinary, r.wrappedUUID()
	case wrapTimestamp:
		t, err = TypeTimestamp, r.wrappedTimestamp()
	case wrapRegex:
		t, err = TypeRegex, r.wrappedRegex()
	case wrapDBPointer:
		t, err = TypeDBPointer, r.wrappedDBPointer()
	case wrapCode:
		t, err = r.wrappedCode(depth)
	case wrapScope:
		t, err = TypeCodeWithScope, r.wrappedScope(depth)
	case wrapMinKey:
		t, err = TypeMinKey, r.wrappedOne(w)
	case wrapMaxKey:
		t, err = TypeMaxKey, r.wrappedOne(w)
	case wrapUndefined:
		t = TypeUndefined
		if r.literal("true") != nil {
			return 0, r.wrongType(w, "true")
		}
	}
	if err != nil {
		return 0, err
	}
	switch r.space() {
	case '}':
		r.pos++
		return t, nil
	case ',':
		return 0, r.failf(start, "other keys beside %s", wrapperKeys[w])
	}
	return 0, r.unexpected("'}'")
}

func (r *extJSONReader) wrongType(w wrapper, want string) error {
	if r.pos >= len(r.src) {
		return r.fail(len(r.src), io.ErrUnexpectedEOF)
	}
	return r.failf(r.pos, "%s must be %s", wrapperKeys[w], want)
}

// wrapped reads the string that is a wrapper's value, which is valid until the next string is read.
func (r *extJSONReader) wrapped(w wrapper) ([]byte, error) {
	if r.space() != '"' {
		return nil, r.wrongType(w, "a string")
	}
	return r.text()
}

// malformed is the error for a wrapper's value that began at start.
func (r *extJSONReader) malformed(start int, w wrapper, text []byte) error {
	return r.failf(start, "%s of %q", wrapperKeys[w], clip(string(text)))
}

func (r *extJSONReader) wrappedOID() error {
	start := r.pos
	text, err := r.wrapped(wrapOID)
	if err != nil {
		return err
	}
	var id ObjectID
	if len(text) != 24 {
		return r.malformed(start, wrapOID, text)
	}
	if _, err := hex.Decode(id[:], text); err != nil {
		return r.malformed(start, wrapOID, text)
	}
	r.dst = append(r.dst, id[:]...)
	return nil
}

func (r *extJSONReader) wrappedNumber(w wrapper) (Type, error) {
	start := r.pos
	var text []byte
	var err error
	if c := r.space(); r.legacy && (c == '-' || c-'0' <= 9) {
		text, _, _, _, err = r.number()
	} else {
		text, err = r.wrapped(w)
	}
	if err != nil {
		return 0, err
	}
	switch w {
	case wrapInt:
		if n, err := strconv.ParseInt(viewString(text), 10, 32); err == nil {
			r.dst = AppendInt32Value(r.dst, int32(n))
			return TypeInt32, nil
		}
	case wrapLong:
		if n, err := strconv.ParseInt(viewString(text), 10, 64); err == nil {
			r.dst = AppendInt64Value(r.dst, n)
			return TypeInt64, nil
		}
	case wrapDouble:
		if f, ok := parseDouble(text); ok {
			r.dst = AppendDoubleValue(r.dst, f)
			return TypeDouble, nil
		}
	case wrapDecimal:
		d, err := parseDecimal(text)
		if err != nil {
			return 0, r.fail(start, fmt.Errorf("$numberDecimal of %q: %w", clip(string(text)), err))
		}
		r.dst = AppendDecimal128Value(r.dst, d)
		return TypeDecimal128, nil
	}
	return 0, r.malformed(start, w, text)
}

// parseDouble parses a decimal number or one of the three names of what is none. Go's own parser
// takes more.
func parseDouble(text []byte) (float64, bool) {
	switch string(text) {
	case "Infinity":
		return math.Inf(1), true
	case "-Infinity":
		return math.Inf(-1), true
	case "NaN":
		return math.NaN(), true
	}
	for _, c := range text {
		if c-'0' > 9 && c != '.' && c != '-' && c != '+' && c|0x20 != 'e' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(viewString(text), 64)
	return f, err == nil
}

// wrappedOne reads the 1 of $minKey and $maxKey.
func (r *extJSONReader) wrappedOne(w wrapper) error {
	start := r.pos
	if c := r.space(); c-'0' > 9 {
		return r.wrongType(w, "1")
	}
	if _, _, fits, n, err := r.number(); err != nil || !fits || n != 1 {
		r.pos = start
		return r.wrongType(w, "1")
	}
	return nil
}

func (r *extJSONReader) wrappedDate() error {
	start := r.pos
	switch c := r.space(); {
	case c == '"':
		text, err := r.text()
		if err != nil {
			return err
		}
		ms, ok := parseDateTime(text, r.legacy || r.values)
		if !ok {
			return r.malformed(start, wrapDate, text)
		}
		r.dst = AppendInt64Value(r.dst, ms)
		return nil
	case c == '{':
		return r.inner(wrapDate, wrapLong)
	case (r.legacy || r.values) && (c == '-' || c-'0' <= 9):
		text, _, fits, n, err := r.number()
		if err != nil {
			return err
		}
		if !fits {
			return r.malformed(start, wrapDate, text)
		}
		r.dst = AppendInt64Value(r.dst, n)
		return nil
	}
	return r.wrongType(wrapDate, "a string or a $numberLong")
}

// inner reads the type wrapper w, which has to be there, inside of another one.
func (r *extJSONReader) inner(outer, w wrapper) error {
	start := r.pos
	r.pos++
	if r.space() != '"' {
		return r.unexpected(wrapperKeys[w])
	}
	keyPos := r.pos
	key, err := r.text()
	if err != nil {
		return err
	}
	if wrapperOf(key) != w {
		return r.failf(keyPos, "key %q in %s, want %s", clip(string(key)), wrapperKeys[outer], wrapperKeys[w])
	}
	_, err = r.wrapper(w, start, 0)
	return err
}

func (r *extJSONReader) wrappedUUID() error {
	start := r.pos
	text, err := r.wrapped(wrapUUID)
	if err != nil {
		return err
	}
	id, ok := parseUUID(text)
	if !ok {
		return r.malformed(start, wrapUUID, text)
	}
	r.dst = AppendBinaryValue(r.dst, BinaryUUID, id[:])
	return nil
}

// pair reads an object with exactly these two keys, in either order; read reads the value of the
// one with the index.
func (r *extJSONReader) pair(w wrapper, keys [2]string, read func(i int) error) error {
	if r.space() != '{' {
		return r.wrongType(w, "an object")
	}
	start := r.pos
	r.pos++
	seen := [2]bool{}
	for n := range 2 {
		if n > 0 && r.space() == ',' {
			r.pos++
		} else if n > 0 && r.space() != '}' {
			return r.unexpected("','")
		}
		if r.space() == '}' {
			break
		}
		if r.space() != '"' {
			return r.unexpected("a key")
		}
		keyPos := r.pos
		key, err := r.text()
		if err != nil {
			return err
		}
		i := 0
		if string(key) == keys[1] {
			i = 1
		}
		if string(key) != keys[i] || seen[i] {
			return r.failf(keyPos, "key %q in %s", clip(string(key)), wrapperKeys[w])
		}
		seen[i] = true
		if err := r.expect(':', "':'"); err != nil {
			return err
		}
		r.space()
		if err := read(i); err != nil {
			return err
		}
	}
	switch c := r.space(); {
	case c == ',':
		return r.failf(r.pos, "more keys in %s than %s and %s", wrapperKeys[w], keys[0], keys[1])
	case c != '}':
		return r.unexpected("'}'")
	case !seen[0] || !seen[1]:
		return r.failf(start, "%s without %s and %s", wrapperKeys[w], keys[0], keys[1])
	}
	r.pos++
	return nil
}

func (r *extJSONReader) wrappedTimestamp() error {
	var parts [2]uint32
	err := r.pair(wrapTimestamp, [2]string{"t", "i"}, func(i int) error {
		start := r.pos
		if c := r.space(); c-'0' > 9 {
			return r.wrongType(wrapTimestamp, "made of two numbers")
		}
		text, _, fits, n, err := r.number()
		if err != nil {
			return err
		}
		if !fits || n > math.MaxUint32 {
			return r.malformed(start, wrapTimestamp, text)
		}
		parts[i] = uint32(n)
		return nil
	})
	r.dst = AppendTimestampValue(r.dst, Timestamp{T: parts[0], I: parts[1]})
	return err
}

func (r *extJSONReader) wrappedBinary() error {
	start := len(r.dst)
	r.dst = append(r.dst, 0, 0, 0, 0, 0)
	if (r.legacy || r.values) && r.space() == '"' {
		if err := r.base64(); err != nil {
			return err
		}
		if err := r.expect(',', "','"); err != nil {
			return err
		}
		if r.space() != '"' {
			return r.unexpected("$type")
		}
		keyPos := r.pos
		if key, err := r.text(); err != nil || string(key) != "$type" {
			return r.failf(keyPos, "$binary without $type")
		}
		if err := r.expect(':', "':'"); err != nil {
			return err
		}
		r.space()
		subtype, err := r.subtype()
		if err != nil {
			return err
		}
		r.finishBinary(start, subtype)
		return nil
	}
	var subtype byte
	err := r.pair(wrapBinary, [2]string{"base64", "subType"}, func(i int) (err error) {
		if i == 0 {
			return r.base64()
		}
		subtype, err = r.subtype()
		return err
	})
	r.finishBinary(start, subtype)
	return err
}

// finishBinary writes the head of the binary value that starts at start.
func (r *extJSONReader) finishBinary(start int, subtype byte) {
	data := r.dst[start+5:]
	if subtype == BinaryOld {
		data = bytes.Clone(data) // it moves, for the inner length
	}
	r.dst = AppendBinaryValue(r.dst[:start], subtype, data)
}

// base64 appends what a base64 string stands for. The padding is not optional.
func (r *extJSONReader) base64() error {
	start := r.pos
	text, err := r.wrapped(wrapBinary)
	if err != nil {
		return err
	}
	// The decoder of the standard library passes over line ends.
	if bytes.ContainsAny(text, "\r\n") {
		return r.malformed(start, wrapBinary, text)
	}
	if r.dst, err = base64.StdEncoding.AppendDecode(r.dst, text); err != nil {
		return r.malformed(start, wrapBinary, text)
	}
	return nil
}

// subtype reads one or two hexadecimal digits.
func (r *extJSONReader) subtype() (byte, error) {
	start := r.pos
	text, err := r.wrapped(wrapBinary)
	if err != nil {
		return 0, err
	}
	if len(text) == 1 || len(text) == 2 {
		digits := [2]byte{'0', text[0]}
		copy(digits[2-len(text):], text)
		var subtype [1]byte
		if _, err := hex.Decode(subtype[:], digits[:]); err == nil {
			return subtype[0], nil
		}
	}
	return 0, r.failf(start, "binary subtype %q, want one or two hexadecimal digits", clip(string(text)))
}

func (r *extJSONReader) wrappedRegex() error {
	var parts [2]string
	err := r.pair(wrapRegex, [2]string{"pattern", "options"}, func(i int) error {
		start := r.pos
		text, err := r.wrapped(wrapRegex)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			return r.fail(start, errNULInRegex)
		}
		parts[i] = string(text)
		return nil
	})
	r.appendRegex(parts[0], parts[1])
	return err
}

func (r *extJSONReader) appendRegex(pattern, options string) {
	r.dst = append(append(r.dst, pattern...), 0)
	r.dst = append(append(r.dst, sortOptions(options)...), 0)
}

func (r *extJSONReader) wrappedDBPointer() error {
	var namespace string
	var oid [12]byte
	err := r.pair(wrapDBPointer, [2]string{"$ref", "$id"}, func(i int) error {
		if i == 0 {
			text, err := r.wrapped(wrapDBPointer)
			namespace = string(text)
			return err
		}
		if r.space() != '{' {
			return r.wrongType(wrapDBPointer, "a string and an $oid")
		}
		at := len(r.dst)
		if err := r.inner(wrapDBPointer, wrapOID); err != nil {
			return err
		}
		copy(oid[:], r.dst[at:])
		r.dst = r.dst[:at]
		return nil
	})
	r.dst = append(AppendStringValue(r.dst, namespace), oid[:]...)
	return err
}

// wrappedCode reads {"$code": here, or with "$scope" after it.
func (r *extJSONReader) wrappedCode(depth int) (Type, error) {
	start := len(r.dst)
	if r.space() != '"' {
		return 0, r.wrongType(wrapCode, "a string")
	}
	if err := r.stringValue(); err != nil {
		return 0, err
	}
	if r.space() != ',' {
		return TypeJavaScript, nil
	}
	r.pos++
	if r.space() != '"' {
		return 0, r.unexpected("$scope")
	}
	keyPos := r.pos
	key, err := r.text()
	if err != nil {
		return 0, err
	}
	if wrapperOf(key) != wrapScope {
		return 0, r.failf(keyPos, "%q beside $code", clip(string(key)))
	}
	if err := r.expect(':', "':'"); err != nil {
		return 0, err
	}
	// The length of the whole comes first: make room for it.
	r.dst = append(r.dst, 0, 0, 0, 0)
	copy(r.dst[start+4:], r.dst[start:])
	if err := r.scope(depth); err != nil {
		return 0, err
	}
	AppendInt32Value(r.dst[:start], int32(len(r.dst)-start))
	return TypeCodeWithScope, nil
}

// wrappedScope reads {"$scope": here, which "$code" must follow.
func (r *extJSONReader) wrappedScope(depth int) error {
	start := len(r.dst)
	if err := r.scope(depth); err != nil {
		return err
	}
	scope := bytes.Clone(r.dst[start:])
	r.dst = append(r.dst[:start], 0, 0, 0, 0)
	if r.space() != ',' {
		return r.failf(r.pos, "$scope without $code")
	}
	r.pos++
	if r.space() != '"' {
		return r.unexpected("$code")
	}
	keyPos := r.pos
	key, err := r.text()
	if err != nil {
		return err
	}
	if wrapperOf(key) != wrapCode {
		return r.failf(keyPos, "%q beside $scope", clip(string(key)))
	}
	if err := r.expect(':', "':'"); err != nil {
		return err
	}
	if r.space() != '"' {
		return r.wrongType(wrapCode, "a string")
	}
	if err := r.stringValue(); err != nil {
		return err
	}
	r.dst = append(r.dst, scope...)
	AppendInt32Value(r.dst[:start], int32(len(r.dst)-start))
	return nil
}

func (r *extJSONReader) scope(depth int) error {
	if r.space() != '{' {
		return r.wrongType(wrapScope, "an object")
	}
	depth, err := r.deeper(depth, r.pos)
	if err != nil {
		return err
	}
	r.pos++
	return r.elements(depth, true)
}

// legacyObject reads, with the reader on the first key of an object, a regular expression or a
// binary in a form from before version 2 whose first key makes no wrapper: {"$regex": s,
// "$options": s}, either order or $regex alone, and {"$type": s, "$binary": s}. Whatever else it
// finds it leaves to be read as a document, for these are the names of query operators, too.
func (r *extJSONReader) legacyObject() (t Type, done bool) {
	parts := map[string]string{}
	for first := true; ; first = false {
		if !first && r.space() == '}' {
			r.pos++
			break
		}
		if !first && r.expect(',', "','") != nil {
			return 0, false
		}
		if r.space() != '"' {
			return 0, false
		}
		key, err := r.text()
		if err != nil || len(parts) == 2 {
			return 0, false
		}
		name := string(key)
		if r.expect(':', "':'") != nil || r.space() != '"' {
			return 0, false
		}
		text, err := r.text()
		if err != nil || bytes.IndexByte(text, 0) >= 0 {
			return 0, false
		}
		parts[name] = string(text)
	}
	if pattern, ok := parts["$regex"]; ok {
		options, both := parts["$options"]
		if both || len(parts) == 1 {
			r.appendRegex(pattern, options)
			return TypeRegex, true
		}
	}
	if text, ok := parts["$binary"]; ok {
		subtype, err := strconv.ParseUint(parts["$type"], 16, 8)
		data, dataErr := base64.StdEncoding.DecodeString(text)
		if err == nil && dataErr == nil {
			r.dst = AppendBinaryValue(r.dst, byte(subtype), data)
			return TypeBinary, true
		}
	}
	return 0, false
}
