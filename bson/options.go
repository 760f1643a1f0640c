package bson

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
)

// Options change how Go values become BSON and back. The zero value is what the package's functions
// use. Options are compared by value, and the compiled codecs are cached for each; copying them is
// cheap, and using them from many goroutines is safe.
type Options struct {
	// Codecs are the user's own codecs for Go types.
	Codecs *Codecs

	// MaxDepth is how deep documents and arrays may nest, in both directions; 0 stands for
	// DefaultMaxDepth.
	MaxDepth int

	// NilSliceAsNull, NilMapAsNull and NilBytesAsNull make nil slices, nil maps (D, M and A
	// included) and nil []byte values null. Without them they are an empty array, an empty document
	// and an empty binary value.
	NilSliceAsNull bool
	NilMapAsNull   bool
	NilBytesAsNull bool

	// MinSize encodes every integer as an int32 if it fits, as the tag minsize does for a field.
	MinSize bool

	// OmitEmpty and OmitZero leave out empty or zero struct fields, as the tags of the same name do
	// for a field.
	OmitEmpty bool
	OmitZero  bool

	// JSONTags takes a field's key and its omitempty from the json tag if it has no bson tag.
	JSONTags bool

	// OmitEmptyStructs makes a struct without an IsZero method count as empty where fields are left
	// out if they are empty, if all of its exported fields are zero. Pointers to structs do not.
	OmitEmptyStructs bool

	// DisallowShadowedFields makes it an error to encode a struct with a field that has the key of
	// one which is deeper inline. Without it that one is left out.
	DisallowShadowedFields bool

	// MethodsByAddress calls methods with pointer receivers, MarshalBSON and the like, only for
	// values that the program could take the address of: what pointers point to, the elements of
	// slices, and the fields and elements of these. A value that lies in a map or an interface, or
	// is encoded by itself, is encoded by its kind, as encoding/json does. Without it such methods
	// are called for all values.
	MethodsByAddress bool

	// FormatKeys makes the keys of documents of map keys as fmt.Sprint does. Without it they have a
	// method, or are strings or integers.
	FormatKeys bool

	// Documents is what an embedded document becomes in a variable of type any.
	Documents DocumentKind

	// Types, if not nil, has the Go types that values become in a variable of type any instead of
	// those in the package's table. Documents and UUID do not matter for its types, BinaryAsBytes
	// does.
	Types *TypeMap

	// DisallowUnknownFields makes it an error if a struct has no field for a key.
	DisallowUnknownFields bool

	// DisallowDuplicateKeys makes it an error if a document has a key twice. Without it the last
	// one wins in structs and maps, and a D holds both.
	DisallowDuplicateKeys bool

	// AllowTruncation decodes numbers into types that cannot hold them exactly: the fraction or the
	// precision is lost, as with the tag truncate for a field. Numbers out of range stay an error.
	AllowTruncation bool

	// AllowInvalidUTF8 decodes strings and keys that are not valid UTF-8 as they are.
	AllowInvalidUTF8 bool

	// LocalTime decodes datetimes in the local time zone instead of UTC.
	LocalTime bool

	// BinaryAsBytes decodes binary values of the subtypes generic and old into a variable of type
	// any as []byte.
	BinaryAsBytes bool

	// UUID is how a UUID is stored. With any choice but UUIDDefault and UUIDUnspecified, binary
	// values that hold one in this way decode into a variable of type any as a UUID, and types of
	// other packages that are 16 bytes and whose text is a UUID, such as google/uuid's, are encoded
	// in this way. They decode from it with any choice.
	UUID UUIDRepresentation

	// ObjectIDAsHex decodes ObjectIDs into Go strings as 24 hexadecimal digits. Without it they do
	// not fit.
	ObjectIDAsHex bool

	// ClearMaps empties a map before it decodes into it. Without it the new entries are added.
	ClearMaps bool

	// ClearStructs sets a struct to its zero value before it decodes into it. Without it fields
	// that the document does not have keep their value.
	ClearStructs bool
}

// DocumentKind is a choice of Go type for embedded documents in variables of type any.
type DocumentKind uint8

// The choices: D (the default), M, Raw, which leaves the document encoded, and map[string]any.
// Arrays become A, or with DocumentsAsRaw a RawValue.
const (
	DocumentsAsD DocumentKind = iota
	DocumentsAsM
	DocumentsAsRaw
	DocumentsAsMap
)

// A TypeMap is an immutable table of the Go types that BSON values become in a variable of type
// any, for Options.Types.
type TypeMap struct{ types [256]reflect.Type }

// NewTypeMap returns a table that has these Go types. Null stays nil: it is an error here, as is a
// nil type.
func NewTypeMap(types map[Type]reflect.Type) (*TypeMap, error) {
	m := new(TypeMap)
	for t, goType := range types {
		switch {
		case t == TypeNull:
			return nil, errors.New("bson: new type map: null becomes nil and nothing else")
		case goType == nil:
			return nil, fmt.Errorf("bson: new type map: no Go type for %s", t)
		}
		m.types[t] = goType
	}
	return m, nil
}

// config is Options made ready for use, with the codecs that were compiled for it.
type config struct {
	Options
	maxDepth int
	special  bool // the user has a codec for a basic type: even these must be looked up

	// documents and arrays are the types of Types that trees are made of as of D, M and A.
	documents, arrays treeType

	cache    [flagsEnd]sync.Map // by flags: reflect.Type -> *typeCodec, complete ones only
	defaults sync.Map           // codecKey -> *typeCodec, without Codecs for the type itself
	mu       sync.Mutex         // held while compiling
}

// codecKey is what a compiled codec depends on besides its config.
type codecKey struct {
	t     reflect.Type
	flags flags
}

// flags are the struct tags that change how everything inside the field is encoded or decoded.
type flags uint8

const (
	flagMinSize flags = 1 << iota
	flagTruncate
	flagCopied // the value has no address, and its methods with pointer receivers do not count
	flagsEnd
)

var (
	configs       sync.Map // Options -> *config
	lastConfig    atomic.Pointer[config]
	defaultConfig = newConfig(Options{})
)

func newConfig(o Options) *config {
	c := &config{Options: o, maxDepth: o.MaxDepth}
	if c.maxDepth <= 0 {
		c.maxDepth = DefaultMaxDepth
	}
	c.special = o.Codecs != nil && slices.ContainsFunc(shortcuts, o.Codecs.encodes)
	if o.Types != nil && o.Documents == DocumentsAsD {
		c.documents = c.treeType(o.Types.types[TypeEmbeddedDocument], typeE)
		c.arrays = c.treeType(o.Types.types[TypeArray], typeAny)
	}
	return c
}

// A treeType is a type whose values are made as those of D, M or A, which they only differ from in
// name.
type treeType struct {
	word typeOf // nil if there is none
	m    bool   // the type is a map
}

// treeType returns what t is if it is a slice of elem, or a map as M is, and decoded as those are.
func (c *config) treeType(t, elem reflect.Type) treeType {
	switch {
	case t == nil || c.Codecs != nil && c.Codecs.decodes(t) || decodesItself(t):
	case t.Kind() == reflect.Slice && t.Elem() == elem:
		return treeType{word: typeWord(reflect.Zero(t).Interface())}
	case elem == typeE && t.Kind() == reflect.Map && t.Key() == reflect.TypeFor[string]() && t.Elem() == typeAny:
		return treeType{word: typeWord(reflect.Zero(t).Interface()), m: true}
	}
	return treeType{}
}

// config returns the one config for o.
func (o Options) config() *config {
	if o == (Options{}) {
		return defaultConfig
	}
	// Programs have few Options, mostly one.
	if c := lastConfig.Load(); c != nil && c.Options == o {
		return c
	}
	c, ok := configs.Load(o)
	if !ok {
		c, _ = configs.LoadOrStore(o, newConfig(o))
	}
	lastConfig.Store(c.(*config))
	return c.(*config)
}

// copied returns the flags of a value that lies in a map or an interface.
func (c *config) copied(fl flags) flags {
	if c.MethodsByAddress {
		fl |= flagCopied
	}
	return fl
}

// flags returns the flags that hold for everything.
func (c *config) flags() flags {
	var f flags
	if c.MinSize {
		f |= flagMinSize
	}
	if c.AllowTruncation {
		f |= flagTruncate
	}
	return f
}
