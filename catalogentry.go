package allium

import (
	"errors"
	"fmt"
	"math"
	"time"

	"allium/bson"
	"allium/internal/wire"
)

// Entries of the catalog are what some program, driver or server version once stored, and some of
// it would be refused today, such as an expireAfterSeconds that is NaN. One odd field must not hide
// the entry, nor those behind it: what does not have the type that it should is left at its zero
// value. Only the name must be right. The bytes given to UnmarshalBSON are kept.

var errNoName = errors.New("entry of the catalog has no name")

// catalogEntry calls field with each field of an entry but its name, which it returns.
func catalogEntry(data bson.Raw, field func(key string, v bson.RawValue)) (name string, err error) {
	if err := wire.CheckDocument(data, 1); err != nil {
		return "", err
	}
	named := false
	for key, v := range data.All() {
		if key == "name" {
			name, named = v.StringValue()
		} else if field != nil {
			field(key, v)
		}
	}
	if !named {
		return "", errNoName
	}
	return name, nil
}

// switched returns a flag of the catalog. Servers take numbers for flags, and keep them.
func switched(v bson.RawValue) bool {
	if _, ok := v.Boolean(); ok || v.IsNumber() {
		return v.AsBool()
	}
	return false
}

// whole returns a number without its fraction, and the nearest there is if it is too large. NaN is
// no number.
func whole(v bson.RawValue) (int64, bool) {
	if n, ok := v.AsInt64(); ok {
		return n, true
	}
	f, ok := v.Double()
	if d, decimal := v.Decimal128(); decimal {
		f, ok = d.Float64(), true
	}
	switch {
	case !ok || math.IsNaN(f):
		return 0, false
	case f >= math.MaxInt64:
		return math.MaxInt64, true
	case f <= math.MinInt64:
		return math.MinInt64, true
	}
	return int64(f), true
}

// documentIn returns an embedded document, nil if v is none.
func documentIn(v bson.RawValue) bson.Raw {
	d, _ := v.Document()
	return d
}

// text returns a string, "" if v is none.
func text(v bson.RawValue) string {
	s, _ := v.StringValue()
	return s
}

// UnmarshalBSON decodes one index of the reply to listIndexes. A field with another type than it
// should have stays zero.
func (i *IndexInfo) UnmarshalBSON(data []byte) (err error) {
	*i = IndexInfo{Raw: data}
	i.Name, err = catalogEntry(i.Raw, func(key string, v bson.RawValue) {
		switch key {
		case "key":
			if d, ok := v.Document(); ok {
				lenient := bson.Options{AllowInvalidUTF8: true}
				if lenient.Unmarshal(d, &i.Keys) != nil {
					i.Keys = nil
				}
			}
		case "unique":
			i.Unique = switched(v)
		case "sparse":
			i.Sparse = switched(v)
		case "hidden":
			i.Hidden = switched(v)
		case "expireAfterSeconds":
			i.ExpireAfter = expiry(v)
		}
	})
	return err
}

// expiry returns an age in seconds, the nearest there is if a Duration cannot hold it; nil if it is
// no number.
func expiry(v bson.RawValue) *time.Duration {
	const most = int64(math.MaxInt64 / time.Second)
	n, ok := whole(v)
	switch {
	case !ok:
		return nil
	case n > most:
		return new(time.Duration(math.MaxInt64))
	case n < -most:
		return new(time.Duration(math.MinInt64))
	}
	return new(time.Duration(n) * time.Second)
}

// UnmarshalBSON decodes one document of the result of $listSearchIndexes. A field with another type
// than it should have stays zero.
func (i *SearchIndexInfo) UnmarshalBSON(data []byte) (err error) {
	*i = SearchIndexInfo{Raw: data}
	i.Name, err = catalogEntry(i.Raw, func(key string, v bson.RawValue) {
		switch key {
		case "id":
			i.ID = text(v)
		case "type":
			i.Type = text(v)
		case "status":
			i.Status = text(v)
		case "queryable":
			i.Queryable = switched(v)
		case "latestDefinition":
			i.LatestDefinition = documentIn(v)
		}
	})
	return err
}

// named is an entry of which only the name is of interest.
type named struct {
	Name string `bson:"name"`
}

// names reads a cursor over entries of the catalog to its end.
func names(all []named, err error) ([]string, error) {
	list := make([]string, len(all))
	for i := range all {
		list[i] = all[i].Name
	}
	return list, err
}

// checkExpiry checks an age that is sent in whole seconds. The server's own message about one that
// it refuses does not name the option, and older servers take some that they cannot mean.
func checkExpiry(d *time.Duration, most int64) error {
	if d == nil || *d >= 0 && int64(*d/time.Second) <= most {
		return nil
	}
	if most == math.MaxInt64 {
		return fmt.Errorf("option ExpireAfter is %v, want 0 or more", *d)
	}
	return fmt.Errorf("option ExpireAfter is %v, want 0 or more and at most %d seconds, which are 68 years", *d, most)
}
