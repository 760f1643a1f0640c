package query

import (
	"allium/bson"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// Geo and text queries are parsed, so that malformed ones are refused and the caller can tell that an index is
// missing; geometry itself is not computed.

func (p *filterParser) parseNear(string, bson.Raw) (node, error) {
	if p.noText {
		return nil, badValue("$geoNear, $near, and $nearSphere are not allowed in this context")
	}
	p.near = true
	return constant(true), nil
}

func (p *filterParser) parseGeo(_, key string, v bson.RawValue, _ bson.Raw) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return nil, badValue("geometry must be an object")
	}
	return nil, srverr.New(srverr.BadValue, "%s is not supported by this server: %s", key, bsontext.Element(key, v))
}

func (p *filterParser) parseText(_ string, v bson.RawValue, lv level) (node, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return nil, badValue("$text expects an object")
	}
	if lv == levelElemMatch {
		return nil, badValue("$text can only be applied to the top-level document")
	}
	if p.noText {
		return nil, badValue("$text is not allowed in this context")
	}
	p.text = true
	return constant(true), nil
}
