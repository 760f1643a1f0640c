// Package bson encodes and decodes BSON 1.1 and MongoDB Extended JSON.
//
// Marshal and Unmarshal convert between documents and Go values: structs, maps, D (an ordered
// document), M (a map) and A (an array). Raw is an encoded document that is read in place; the
// Append functions build documents without Go values. Encoder and Decoder are for streams of
// documents, MarshalExtJSON and UnmarshalExtJSON for Extended JSON. Options, a value whose methods
// are the same functions, changes the defaults.
//
// All functions are safe for concurrent use, as long as nobody writes to their arguments meanwhile.
// The result of Unmarshal shares no memory with its input.
//
// # Types
//
// The BSON type that a Go type is encoded as, and the other types that decode into it. Null and
// undefined fit everywhere: they set the variable to its zero value.
//
//	Go type                        BSON type                     also decodes from
//	-----------------------------  ----------------------------  ---------------------------------
//	bool                           boolean                       numbers: not 0 is true
//	int8, int16, int32             32-bit integer                every whole number in range;
//	                                                             booleans as 0, 1
//	uint8, uint16                  32-bit integer                the same
//	int                            32-bit integer if it fits,    the same
//	                               else 64-bit integer
//	int64, uint, uint32, uint64    64-bit integer (minsize: 32   the same
//	                               bits if it fits)
//	float32, float64               double                        integers that it holds exactly;
//	                                                             booleans
//	string                         string                        symbol; binary of subtype 0 or 2
//	                                                             (UTF-8); with an option ObjectID
//	[]byte                         binary, subtype 0             subtype 2; string and symbol
//	[N]byte                        binary, subtype 0             subtype 2; array
//	struct                         document
//	map                            document                      (keys: see below)
//	D, []E                         document
//	slice, array (also of types    array                         (an array takes fewer elements,
//	                                                             not more)
//	  made of byte, as enumerations)
//	pointer                        what it points to; nil: null
//	interface                      what it holds; nil: null      see the next table
//	time.Time                      UTC datetime (milliseconds)   timestamp; 64-bit integer
//	                                                             (milliseconds); RFC 3339
//	time.Duration                  64-bit integer (nanoseconds)  as int64
//	url.URL                        string                        symbol
//	json.Number                    64-bit integer or double      32-bit integer
//	struct without exported fields string                        (a type like big.Int or
//	                                                             netip.Addr)
//	  that is a TextMarshaler
//	ObjectID                       ObjectID                      string of 24 hexadecimal digits
//	[16]byte whose text is a UUID  binary, subtype 0; with a     the same, and subtype 4
//	                               choice in Options.UUID, 4
//	UUID                           binary, subtype 4 (or see     the same only
//	                               Options.UUID)
//	DateTime                       UTC datetime                  64-bit integer
//	JavaScript, Symbol             javascript, symbol            string
//	Raw                            document                      array
//	RawValue                       what it is                    everything
//	Vector                         binary, subtype 9
//	DBRef                          document
//	Binary, Timestamp, Decimal128, the type of that name
//	Regex, DBPointer,
//	CodeWithScope, Null,
//	Undefined, MinKey, MaxKey
//	chan, func, complex, uintptr   an error
//
// What a BSON type becomes in a variable of type any, and so in D, M and A:
//
//	double             float64     boolean        bool        code with scope  CodeWithScope
//	string             string      UTC datetime   DateTime    32-bit integer   int32
//	embedded document  D           null           nil         timestamp        Timestamp
//	array              A           regex          Regex       64-bit integer   int64
//	binary             Binary      dbPointer      DBPointer   128-bit decimal  Decimal128
//	undefined          Undefined   javascript     JavaScript  min key          MinKey
//	ObjectID           ObjectID    symbol         Symbol      max key          MaxKey
//
// Types can define their own encoding: with MarshalBSONValue and UnmarshalBSONValue (any value; see
// ValueMarshaler) or MarshalBSON and UnmarshalBSON (a document; see Marshaler). Options.Codecs
// defines it for types of other packages, and comes first. The keys of maps are strings, integers
// (in decimal) or types with MarshalKey or MarshalText.
//
// # Structs
//
// A field's key is its name in lower case, or what its tag says:
//
//	Name  string    `bson:"fullName"`        // another key
//	Nick  string    `bson:",omitempty"`      // left out if false, 0, "", nil, empty or IsZero()
//	Fee   *int      `bson:",omitempty"`      // left out if nil: a pointer to 0 is kept
//	Since time.Time `bson:",omitzero"`       // left out if zero or IsZero(); structs too
//	Count int64     `bson:",minsize"`        // a 32-bit integer if it fits
//	Level int       `bson:",truncate"`       // decodes 1.5 as 1; a float32 may lose precision
//	Note  string    `bson:",lenient"`        // "" if it is there with another type
//	Base            `bson:",inline"`         // the keys of a struct, *struct or map inside
//	Cache map[string]int `bson:"-"`          // left out
//
// An option stands behind a comma. omitempty, minsize, truncate and inline hold without one, too,
// and are then also the key: "inline" is ",inline", but "omitempty" is "omitempty,omitempty".
//
// With omitempty a pointer or an interface is left out only if it is nil, as with encoding/json,
// whatever the value that it leads to says of itself: a patch with a pointer to a zero keeps it.
// Unlike with encoding/json, values with an IsZero method, such as ObjectID and time.Time, are
// asked for it. omitzero is as in encoding/json: it also asks IsZero of what a pointer leads to.
//
// A field with the tag lenient is set to its zero value if what the document has does not decode
// into it; the other fields are decoded. It is for documents that other programs write. minsize and
// truncate also hold for what is inside the field, unless it is inline; lenient holds for each
// field of an inline struct.
//
// Embedded structs are fields like others, with their type's name, unless they are inline. Of two
// fields with one key the one less deep inline wins; at the same depth it is an error. An inline
// map takes the keys that no field has, and is written last. Fields that are not exported are left
// alone, but the exported fields of an embedded struct of an unexported type that is inline are
// not: they are encoded and decoded. If it is embedded by a pointer, this must be set before
// decoding, as with encoding/json; a nil one is an error once the document has one of its keys. An
// unexported map that is inline is an error.
//
// A key that has no field in its own spelling is tried in lower case. Other keys are skipped, or an
// error with Options.DisallowUnknownFields.
//
// # Defaults
//
//   - A nil slice becomes an empty array, a nil map an empty document, nil bytes an empty binary;
//     see Options.NilSliceAsNull and its siblings.
//   - Times decode in UTC.
//   - Strings and keys must be valid UTF-8, and keys without NUL, in both directions.
//   - Decoding changes what it finds: fields and map entries that the document does not have stay.
//     Slices are always new; a pointer that is not nil is followed, also one that an interface
//     holds; a map that is not nil is added to.
//   - A key that occurs twice in a document: the last one wins in structs and maps, D has both.
//     Options.DisallowDuplicateKeys makes it an error.
//   - A number that does not fit is an error, be it out of range, with a fraction, or with more
//     precision than there is room for. A time is truncated to milliseconds.
//   - Documents nest 200 levels deep at most, see Options.MaxDepth; a Go value that contains itself
//     runs into that too.
//
// Errors of encoding are an *EncodeError, those of decoding a *DecodeError. Both have the path
// ("items.3.price") and the types.
//
// # Differences from the official driver
//
// Models that work with the official driver (go.mongodb.org/mongo-driver/v2) work unchanged, with
// these differences:
//
//   - nil slices, maps and bytes are empty, not null (see above).
//   - Whole numbers that a float cannot hold exactly, and NaN as a json.Number, are errors; NaN
//     fits into a float32.
//   - Methods with pointer receivers are found on every value, not only on addressable ones.
//   - Opaque structs with text methods are strings; there they are empty documents.
//   - Decoding a slice makes a new one instead of writing into the old one's memory; a null in a
//     variable of type any leaves nil there, whatever it held.
//   - A null does not reach UnmarshalBSON; other values than documents and arrays there are errors.
//   - Strings and keys with invalid UTF-8 are errors; for decoding see Options.AllowInvalidUTF8.
//   - encoding/json writes timestamps, binaries, regular expressions and other types that JSON has
//     nothing for as Extended JSON, there as Go structs.
//   - omitzero exists. Options are part of what codecs are cached by.
//   - There is no registry of encoders and decoders: Options, CodecFor and CodecBy take its place.
package bson
