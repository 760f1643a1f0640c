package args

import (
	"slices"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// Arguments as the commands read them whose parsers are written by hand.

// CheckFields refuses what is none of these fields of a command since version 5.0: for commands
// that the release notes of that version name among those which took any field before, and whose
// other arguments are read by hand.
func CheckFields(from Source, command string, fields ...string) error {
	version := from.Version()
	if !version.AtLeast(5, 0) {
		return nil
	}
	body, _ := from.Message()
	first := true
	for k := range body.All() {
		if !first && !Generic(version, k) && !slices.Contains(fields, k) {
			return UnknownField(command + "." + k)
		}
		first = false
	}
	return nil
}

// CheckParsed is CheckFields where nearly every command has a definition
// ([release.Version.AllParsed]): for those that took any field until then.
func CheckParsed(from Source, command string, fields ...string) error {
	if !from.Version().AllParsed() {
		return nil
	}
	return CheckFields(from, command, fields...)
}

// NotA is the error of a field that has to have one type and has another one.
func NotA(field, want string, v bson.RawValue) error {
	return srverr.New(srverr.TypeMismatch, "\"%s\" had the wrong type. Expected %s, found %s", field, want,
		bsontext.TypeName(v.Type))
}

// WrongTypeOld is the error of an [Old] parser that says what these say.
func WrongTypeOld(_ Source, field string, v bson.RawValue, want string) error {
	return NotA(field, want, v)
}

// Missing is the error of a field that has to be there.
func Missing(field string) error {
	return srverr.New(srverr.NoSuchKey, "Missing expected field \"%s\"", field)
}

// ExtractString returns a string field that has to be there.
func ExtractString(doc bson.Raw, field string) (string, error) {
	v := doc.Lookup(field)
	if v.IsZero() {
		return "", Missing(field)
	}
	s, ok := v.StringValue()
	if !ok {
		return "", NotA(field, "string", v)
	}
	return s, nil
}

// ExtractBool returns a boolean field, which may be a number; byDefault if it is not given.
func ExtractBool(doc bson.Raw, field string, byDefault bool) (bool, error) {
	v := doc.Lookup(field)
	if v.IsZero() {
		return byDefault, nil
	}
	if !safeBool.takes(v) {
		return false, notFlag.error(field, v)
	}
	return v.AsBool(), nil
}

// notFlag is what is said of a field that should be a boolean or a number.
var notFlag = words{srverr.TypeMismatch, "Expected boolean or number type for field \"%s\", found %s"}

// ExtractArray returns an array field; nil if it is not given.
func ExtractArray(doc bson.Raw, field string) (bson.Raw, error) { return extract(doc, field, array) }

// ExtractObject returns a document field; nil if it is not given.
func ExtractObject(doc bson.Raw, field string) (bson.Raw, error) { return extract(doc, field, object) }

// ExtractFlag returns a boolean field, which may be nothing else; false if it is not given.
func ExtractFlag(doc bson.Raw, field string) (bool, error) {
	b, err := extract(doc, field, boolean)
	return len(b) > 0 && b[0] != 0, err
}

func extract(doc bson.Raw, field string, want kind) (bson.Raw, error) {
	v := doc.Lookup(field)
	if !v.IsZero() && !want.takes(v) {
		return nil, NotA(field, want.String(), v)
	}
	return v.Value, nil
}
