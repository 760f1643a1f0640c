// Package schema keeps what a database has beside its documents as the program declares it:
// indexes, validators, collations, capped, clustered and time series collections, views, search
// indexes.
//
//	var city = field.Of(func(o *Order) *string { return &o.Ship.City })
//
//	var Schema = schema.Schema{Collections: []schema.Collection{{
//		Name:    "orders",
//		Options: allium.CreateCollectionOptions{Validator: schema.Validator(field.Rules(city))},
//		Indexes: []allium.IndexModel{{Keys: field.Asc(city)}},
//	}}}
//
//	changes, err := schema.Plan(ctx, db, Schema)   // what differs, and what it costs
//	made, err := schema.Apply(ctx, db, Schema)     // nothing is dropped unless that is asked for
//
// Plan reads only. Apply does what Plan says: it can run when each copy of a service starts, twice
// changes nothing the second time, and what fails does not keep the rest from being done. Diff
// compares two schemas, Read makes one of a database, WriteGo writes it as Go source. Command
// "allium schema" does the same with the JSON that Main and WriteJSON write.
//
// Only the collections that are declared are looked at, unless PlanOptions.Whole says that they are
// all that the database has. Indexes, validators and expirations of a declared collection that are
// not declared are differences, which Apply leaves as they are unless it is told to drop them.
//
// It is for MongoDB 4.4 and newer. All functions are safe for concurrent use.
package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"allium"
	"allium/bson"
	"allium/internal/option"
	"allium/mongoerr"
	"allium/patterns/internal/settled"
)

// Schema is what a database has beside its documents, as it is declared or as it was read.
type Schema struct {
	// Collections are the collections and views. A view stands behind what it is on.
	Collections []Collection
}

// Collection is a collection or a view.
type Collection struct {
	// Name is its name, without the database.
	Name string
	// Options are what it is created with. A zero field is not declared: see Plan for what may be
	// changed later. Comment and Timeout are not part of a schema, and IDIndex, StorageEngine,
	// IndexOptionDefaults and EncryptedFields are used when the collection is created, and not
	// compared.
	Options allium.CreateCollectionOptions
	// Indexes are its indexes but that on _id. One without a Name may have any.
	Indexes []allium.IndexModel
	// SearchIndexes are its search indexes, which need Atlas.
	SearchIndexes []allium.SearchIndexModel
}

// own is how the names of collections begin that this package and its neighbours use. They are part
// of no schema.
const own = "allium_"

// leases is the collection of the lease that Apply holds.
const leases = own + "leases"

// ReadOptions are the options of Read.
type ReadOptions struct {
	// Collections are the names of those that are read. Nil: all.
	Collections []string
}

// Read returns the schema that a database has: collections, and behind them views. The server's own
// collections, those that Queryable Encryption keeps its state in, and those of this package and
// its neighbours, whose names begin with "allium_", are left out. Search indexes are read where the
// deployment has such. An option of a newer server that this package does not know is left out.
func Read(ctx context.Context, db *allium.Database, opts ...ReadOptions) (Schema, error) {
	o := option.Merge(opts)
	db = settled.Database(db)
	lo := allium.ListCollectionsOptions{}
	if o.Collections != nil {
		lo.Filter = bson.D{{Key: "name", Value: bson.D{{Key: "$in", Value: o.Collections}}}}
	}
	cur, err := db.ListCollections(ctx, lo)
	if err != nil {
		return Schema{}, err
	}
	infos, err := cur.All(ctx)
	if err != nil {
		return Schema{}, err
	}
	slices.SortFunc(infos, func(a, b allium.CollectionInfo) int { return strings.Compare(a.Name, b.Name) })
	var s Schema
	var views []Collection
	searches := true // until a server says that it has none
	for _, info := range infos {
		if strings.HasPrefix(info.Name, "system.") || strings.HasPrefix(info.Name, "enxcol_.") ||
			strings.HasPrefix(info.Name, own) {
			continue
		}
		c := Collection{Name: info.Name}
		if err := readFields(createOptions, &c.Options, info.Options); err != nil {
			return Schema{}, fmt.Errorf("collection %s: %w", info.Name, err)
		}
		if info.Type == "view" {
			views = append(views, c)
			continue
		}
		if err := readIndexes(ctx, db, &c); err != nil {
			return Schema{}, err
		}
		if searches && info.Type == "collection" {
			if searches, err = readSearchIndexes(ctx, db, &c); err != nil {
				return Schema{}, err
			}
		}
		s.Collections = append(s.Collections, c)
	}
	s.Collections = append(s.Collections, inOrder(views)...)
	return s, nil
}

// inOrder puts views behind those that they are on.
func inOrder(views []Collection) []Collection {
	var out []Collection
	waiting := slices.Clone(views)
	for len(waiting) > 0 {
		rest := waiting[:0:0]
		for _, v := range waiting {
			if slices.ContainsFunc(waiting, func(o Collection) bool {
				return o.Name == v.Options.ViewOn && o.Name != v.Name
			}) {
				rest = append(rest, v)
			} else {
				out = append(out, v)
			}
		}
		if len(rest) == len(waiting) {
			return append(out, rest...) // a circle, which no server has
		}
		waiting = rest
	}
	return out
}

func readIndexes(ctx context.Context, db *allium.Database, c *Collection) error {
	cur, err := db.Collection(c.Name).ListIndexes(ctx)
	if err != nil {
		return err
	}
	list, err := cur.All(ctx)
	if err != nil {
		return err
	}
	for _, info := range list {
		if info.Name == "_id_" || info.Raw.Lookup("clustered").AsBool() || isSeriesIndex(c, &info) {
			continue
		}
		var m allium.IndexModel
		if err := readFields(indexOptions, &m, written(info.Raw)); err != nil {
			return fmt.Errorf("index %s of %s: %w", info.Name, c.Name, err)
		}
		if m.Collation == nil && c.Options.Collation != nil {
			m.Collation = &allium.Collation{Locale: "simple"} // or it would have the collection's
		}
		c.Indexes = append(c.Indexes, m)
	}
	return nil
}

// isSeriesIndex reports whether an index is the one that servers since 6.0 make of themselves for a
// time series collection.
func isSeriesIndex(c *Collection, info *allium.IndexInfo) bool {
	o := encode(c.Options.TimeSeries)
	meta, _ := o.Lookup("metaField").StringValue()
	when, _ := o.Lookup("timeField").StringValue()
	return meta != "" && len(info.Keys) == 2 && info.Keys[0].Key == meta && info.Keys[1].Key == when &&
		info.Name == meta+"_1_"+when+"_1"
}

// readSearchIndexes reports whether the deployment has search indexes.
func readSearchIndexes(ctx context.Context, db *allium.Database, c *Collection) (bool, error) {
	cur, err := db.Collection(c.Name).ListSearchIndexes(ctx)
	var list []allium.SearchIndexInfo
	if err == nil {
		list, err = cur.All(ctx)
	}
	if _, refused := errors.AsType[*mongoerr.ServerError](err); refused {
		return false, nil
	}
	for _, info := range list {
		var d bson.D
		if err := bson.Unmarshal(info.LatestDefinition, &d); err != nil {
			return true, fmt.Errorf("search index %s of %s: %w", info.Name, c.Name, err)
		}
		m := allium.SearchIndexModel{Name: info.Name, Type: info.Type, Definition: d}
		if m.Type == "search" {
			m.Type = ""
		}
		c.SearchIndexes = append(c.SearchIndexes, m)
	}
	return true, err
}

// WriteJSON writes a schema as Extended JSON: an object with an array "collections", whose elements
// have a "name", the "options" of the command create, "indexes" as in the command createIndexes,
// and "searchIndexes" as in createSearchIndexes.
func WriteJSON(w io.Writer, s Schema) error {
	list, err := documents(s)
	if err != nil {
		return err
	}
	text, err := bson.MarshalExtJSONIndent(bson.D{{Key: "collections", Value: list}}, false, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// ReadJSON reads what WriteJSON writes. An option that it does not know is an error.
func ReadJSON(r io.Reader) (Schema, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Schema{}, err
	}
	if !json.Valid(text) {
		return Schema{}, errors.New("schema: the text is not JSON")
	}
	var file struct {
		Collections []struct {
			Name          string     `bson:"name"`
			Options       bson.Raw   `bson:"options"`
			Indexes       []bson.Raw `bson:"indexes"`
			SearchIndexes []bson.Raw `bson:"searchIndexes"`
		} `bson:"collections"`
	}
	raw, err := bson.ParseExtJSON(text)
	if err == nil {
		err = bson.Options{DisallowUnknownFields: true}.Unmarshal(raw, &file)
	}
	if err != nil {
		return Schema{}, fmt.Errorf("schema: %w", err)
	}
	var s Schema
	for _, f := range file.Collections {
		c := Collection{Name: f.Name}
		err := known(createOptions, f.Options)
		if err == nil {
			err = readFields(createOptions, &c.Options, f.Options)
		}
		for i := 0; err == nil && i < len(f.Indexes); i++ {
			var m allium.IndexModel
			if err = known(indexOptions, f.Indexes[i]); err == nil {
				err = readFields(indexOptions, &m, f.Indexes[i])
			}
			c.Indexes = append(c.Indexes, m)
		}
		for i := 0; err == nil && i < len(f.SearchIndexes); i++ {
			var m allium.SearchIndexModel
			if err = known(searchOptions, f.SearchIndexes[i]); err == nil {
				err = readFields(searchOptions, &m, f.SearchIndexes[i])
			}
			c.SearchIndexes = append(c.SearchIndexes, m)
		}
		if err != nil {
			return Schema{}, fmt.Errorf("schema: collection %q: %w", f.Name, err)
		}
		s.Collections = append(s.Collections, c)
	}
	return s, s.check()
}

// Main is the body of a program that writes a schema as JSON to its standard output, for "allium
// schema":
//
//	func main() { schema.Main(store.Schema) }
//
//	go run example.com/shop/cmd/schema | allium schema plan -file - mongodb://localhost/shop
//
// It ends the program with status 1 if that fails.
func Main(s Schema) {
	if err := errors.Join(s.check(), WriteJSON(os.Stdout, s)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// onlyID are the keys of the index on _id.
var onlyID = encode(bson.D{{Key: "_id", Value: 1}})

// check finds what no database can have.
func (s Schema) check() error {
	seen := map[string]bool{}
	for _, c := range s.Collections {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("schema: collection %q: %w", c.Name, fmt.Errorf(format, args...))
		}
		switch {
		case c.Name == "":
			return errors.New("schema: a collection has no name")
		case seen[c.Name]:
			return bad("it is declared twice")
		case strings.HasPrefix(c.Name, own) || strings.HasPrefix(c.Name, "system."):
			return bad("its name is not for programs")
		case c.Options.ViewOn != "" && len(c.Indexes)+len(c.SearchIndexes) > 0:
			return bad("a view has no indexes")
		}
		seen[c.Name] = true
		names := map[string]bool{}
		for i, m := range c.Indexes {
			spec, err := document(indexOptions, &m)
			if err != nil {
				return bad("index %d: %w", i, err)
			}
			key, _ := spec.Lookup("key").Document()
			if key.IsEmpty() {
				return bad("index %d has no keys", i)
			}
			name := indexName(spec)
			if names[name] {
				return bad("index %s is declared twice", name)
			}
			names[name] = true
			if name == "_id_" || bson.Equal(key, onlyID) {
				return bad("the index on _id is not declared")
			}
		}
		if _, err := document(createOptions, &c.Options); err != nil {
			return bad("%w", err)
		}
		for i, m := range c.SearchIndexes {
			if _, err := document(searchOptions, &m); err != nil || m.Definition == nil {
				return bad("search index %d: its definition is not a document: %w", i, err)
			}
		}
	}
	return nil
}
