package command

import "allium/bson"

// Collation says how strings are compared (specification: Collation). Fields that are zero are left to the server.
type Collation struct {
	Locale          string // for example "en" or "de@collation=phonebook"; "simple" compares bytes
	CaseLevel       *bool
	CaseFirst       string // "upper", "lower" or "off"
	Strength        int    // 1 to 5
	NumericOrdering *bool
	Alternate       string // "non-ignorable" or "shifted"
	MaxVariable     string // "punct" or "space"
	Normalization   *bool
	Backwards       *bool
}

// Document returns the collation as the server takes it.
func (c *Collation) Document() bson.Raw {
	start, dst := bson.BeginDocument(nil)
	return bson.EndDocument(c.appendFields(dst), start)
}

func (c *Collation) append(dst []byte) []byte {
	start, dst := bson.BeginDocumentElement(dst, "collation")
	return bson.EndDocument(c.appendFields(dst), start)
}

func (c *Collation) appendFields(dst []byte) []byte {
	f := fields{dst: dst}
	f.str("locale", c.Locale)
	f.flag("caseLevel", c.CaseLevel)
	f.str("caseFirst", c.CaseFirst)
	f.int32("strength", int32(c.Strength))
	f.flag("numericOrdering", c.NumericOrdering)
	f.str("alternate", c.Alternate)
	f.str("maxVariable", c.MaxVariable)
	f.flag("normalization", c.Normalization)
	f.flag("backwards", c.Backwards)
	return f.dst
}
