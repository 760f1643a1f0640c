package expr

// Concat is strings one behind the other; null if one is null.
func Concat[D any, S ~string](vs ...Value[D, S]) Value[D, string] {
	return many[D, string]("$concat", vs)
}

// ToLower is a string in lower case: ASCII letters alone.
func ToLower[D any, S ~string](v Value[D, S]) Value[D, string] {
	return one[D, string]("$toLower", v.raw)
}

// ToUpper is a string in upper case: ASCII letters alone.
func ToUpper[D any, S ~string](v Value[D, S]) Value[D, string] {
	return one[D, string]("$toUpper", v.raw)
}

// Trim is a string without the white space around it.
func Trim[D any, S ~string](v Value[D, S]) Value[D, string] {
	return named[D, string]("$trim", arg("input", v.raw))
}

// Substr is a part of a string: this number of characters from the character start on.
func Substr[D any, S ~string](v Value[D, S], start, length int) Value[D, string] {
	return Value[D, string]{doc("$substrCP", v.raw, start, length)}
}

// StrLen is the number of characters of a string.
func StrLen[D any, S ~string](v Value[D, S]) Value[D, int32] {
	return one[D, int32]("$strLenCP", v.raw)
}

// Split is the parts of a string between the separators.
func Split[D any, S ~string](v Value[D, S], separator string) Value[D, []string] {
	return two[D, []string]("$split", v.raw, Lit[D](separator).raw)
}

// RegexMatch is whether a string has a match of the regular expression.
func RegexMatch[D any, S ~string](v Value[D, S], pattern, options string) Value[D, bool] {
	return named[D, bool]("$regexMatch", arg("input", v.raw), arg("regex", Lit[D](pattern).raw),
		arg("options", options))
}
