package allium

import (
	"allium/bson"
	"allium/collation"
)

// Collation says how the server compares strings. The zero value of a field leaves it to the
// locale: some have defaults of their own, and a locale such as "en@colNumeric=yes" sets some, so
// that a pointer to false is not the same as nil.
type Collation struct {
	// Locale must be set: for example "en" or "de@collation=phonebook"; "simple" compares bytes.
	Locale string
	// CaseLevel compares upper and lower case at a Strength of 1 or 2.
	CaseLevel *bool
	// CaseFirst sorts upper or lower case first.
	CaseFirst collation.CaseFirst
	// Strength is the level up to which characters are compared.
	Strength collation.Strength
	// NumericOrdering compares sequences of digits as numbers.
	NumericOrdering *bool
	// Alternate says whether spaces and punctuation count.
	Alternate collation.Alternate
	// MaxVariable says what is ignored if Alternate is collation.Shifted.
	MaxVariable collation.MaxVariable
	// Normalization checks whether text has to be normalized, and does it.
	Normalization *bool
	// Backwards compares accents from the end of the string, as some French dictionaries do.
	Backwards *bool
}

// raw returns the collation as the server takes it, nil for a nil one.
func (c *Collation) raw() bson.Raw {
	if c == nil {
		return nil
	}
	start, dst := bson.BeginDocument(nil)
	for _, f := range []struct{ key, value string }{{"locale", c.Locale}, {"caseFirst", string(c.CaseFirst)}, {"alternate", string(c.Alternate)}, {"maxVariable", string(c.MaxVariable)}} {
		if f.value != "" {
			dst = bson.AppendString(dst, f.key, f.value)
		}
	}
	if c.Strength != 0 {
		dst = bson.AppendInt32(dst, "strength", int32(c.Strength))
	}
	for _, f := range []struct {
		key   string
		value *bool
	}{{"caseLevel", c.CaseLevel}, {"numericOrdering", c.NumericOrdering}, {"normalization", c.Normalization}, {"backwards", c.Backwards}} {
		if f.value != nil {
			dst = bson.AppendBool(dst, f.key, *f.value)
		}
	}
	return bson.EndDocument(dst, start)
}
