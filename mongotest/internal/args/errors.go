package args

import (
	"fmt"

	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/release"
	"allium/mongotest/internal/srverr"
)

// The errors of the server's generated parsers.

// WrongType is the error of a field of a type that it does not take.
func WrongType(field string, got bson.Type, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", field,
		bsontext.TypeName(got), want)
}

// UnknownField is the error of a field that there is not.
func UnknownField(field string) error {
	return srverr.New(40415, "BSON field '%s' is an unknown field.", field)
}

// MissingField is the error of a required field that is not given.
func MissingField(field string) error {
	return srverr.New(40414, "BSON field '%s' is missing but a required field", field)
}

// WrongTypes is the error of a field that takes several types, and none like this one. want ends
// the text, so that it can be as odd as the server's.
func WrongTypes(field string, got bson.Type, want string) error {
	return srverr.New(srverr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected types '%s", field,
		bsontext.TypeName(got), want)
}

// WrongNumber is the error of a field that takes numbers alone, and has something else.
func WrongNumber(version release.Version, within, field string, v bson.RawValue) error {
	return number.check(version, within, field, v)
}

// WrongFlag is the error of a field that takes booleans and numbers, and has something else.
func WrongFlag(version release.Version, within, field string, v bson.RawValue) error {
	return safeBool.check(version, within, field, v)
}

// TooSmall is the error of a number that is less than it may be.
func TooSmall(version release.Version, field string, least, got int64) error {
	return outOfRange(version, field, ">=", least, got)
}

// TooLarge is the error of a number that is more than it may be.
func TooLarge(version release.Version, field string, most, got int64) error {
	return outOfRange(version, field, "<=", most, got)
}

func outOfRange(version release.Version, field, relation string, bound, got int64) error {
	code := int32(51024)
	if version.AllParsed() {
		code = srverr.BadValue
	}
	return srverr.New(code, "BSON field '%s' value must be %s %d, actual value '%d'", field, relation, bound, got)
}

// DuplicateField is the error of a field that is given twice.
func DuplicateField(field string) error {
	return srverr.New(40413, "BSON field '%s' is a duplicate field", field)
}

// FailedToParse is an error of the parsers of find and getMore before version 5.0, which show the
// whole command.
func FailedToParse(from Source, format string, values ...any) error {
	body, _ := from.Message()
	return srverr.New(srverr.FailedToParse, "Failed to parse: %s. %s", bsontext.Document(body),
		fmt.Sprintf(format, values...))
}

// Unrecognized is the error of these parsers of a field that there is not.
func Unrecognized(from Source, k string) error {
	return FailedToParse(from, "Unrecognized field '%s'.", k)
}

// noObject is what is said of a field that the server reads as a document, whatever it is.
const noObject = "invalid parameter: expected an object (%s)"

// NoObject is that error.
func NoObject(field string) error { return srverr.New(10065, noObject, field) }

// MustBe are the words for a field of a wrong type in the specification of an index.
func MustBe(what string) string { return "The field '%s' must be " + what + ", but got %s" }
