package server

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/store"
)

// DescribeCollection returns a collection's entry in listCollections.
func DescribeCollection(c *store.Coll, nameOnly bool) bson.Raw {
	at, doc := bson.BeginDocument(nil)
	doc = bson.AppendString(doc, "name", c.Name)
	kind := "collection"
	switch {
	case c.View:
		kind = "view"
	case c.TimeSeries:
		kind = "timeseries"
	}
	doc = bson.AppendString(doc, "type", kind)
	if nameOnly {
		return bson.EndDocument(doc, at)
	}
	doc = bson.AppendDocument(doc, "options", bsondoc.OrEmpty(c.Raw))
	info, doc := bson.BeginDocumentElement(doc, "info")
	doc = bson.AppendBool(doc, "readOnly", c.View)
	if !c.View && !c.TimeSeries {
		doc = bson.AppendBinary(doc, "uuid", bson.BinaryUUID, c.UUID[:])
	}
	doc = bson.EndDocument(doc, info)
	if list := c.Indexes(); len(list) > 0 && list[0].IsID {
		doc = bson.AppendDocument(doc, "idIndex", list[0].Spec)
	}
	return bson.EndDocument(doc, at)
}
