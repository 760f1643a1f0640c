package bson

import (
	"encoding/json"
	"net/url"
	"reflect"
	"time"

	"allium/bson"
)

// knownTypes are the types of other packages and of Allium that values are encoded and decoded of
// in a way of their own: what is registered for interfaces and kinds is not for them.
var knownTypes = map[reflect.Type]bool{
	reflect.TypeFor[ObjectID](): true, reflect.TypeFor[DateTime](): true, reflect.TypeFor[JavaScript](): true,
	reflect.TypeFor[Symbol](): true,
	reflect.TypeFor[D]():      true, reflect.TypeFor[time.Time](): true, reflect.TypeFor[[]byte](): true,
	reflect.TypeFor[any]():         true,
	reflect.TypeFor[json.Number](): true, reflect.TypeFor[url.URL](): true,
	// What package mongo has encoded already, and gives to Allium.
	reflect.TypeFor[bson.Raw](): true, reflect.TypeFor[bson.RawValue](): true, reflect.TypeFor[[]bson.Raw](): true,
}
