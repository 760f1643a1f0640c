package expr

import (
	"crypto/md5"
	"encoding/binary"
	"math"

	"allium/bson"
	"allium/mongotest/internal/args"
)

func init() {
	registerNary(&naryOp{name: "$toHashedIndexKey", arity: exactly(1),
		eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
			v := args[0]
			if v.Type == 0 { // as an index has what is missing
				v = bson.RawValue{Type: bson.TypeNull}
			}
			return bson.RawValue{Type: bson.TypeInt64, Value: bson.AppendInt64Value(nil, HashKey(v))}, nil
		}})
}

// canonicalHashTypes are the numbers that stand for a value's type in its hash; numbers have one
// for all.
var canonicalHashTypes = map[bson.Type]int32{
	bson.TypeMinKey: -1, bson.TypeMaxKey: 127, bson.TypeUndefined: 0, bson.TypeNull: 5, bson.TypeDouble: 10,
	bson.TypeInt32: 10,
	bson.TypeInt64: 10, bson.TypeDecimal128: 10, bson.TypeString: 15, bson.TypeSymbol: 15,
	bson.TypeEmbeddedDocument: 20,
	bson.TypeArray:            25, bson.TypeBinary: 30, bson.TypeObjectID: 35, bson.TypeBoolean: 40,
	bson.TypeDateTime:  45,
	bson.TypeTimestamp: 47, bson.TypeRegex: 50, bson.TypeDBPointer: 55, bson.TypeJavaScript: 60,
	bson.TypeCodeWithScope: 65,
}

// HashKey returns the hash that hashed indexes and hashed shard keys order values by.
func HashKey(v bson.RawValue) int64 { return SeededHash(v, 0) }

// SeededHash returns the hash of a value with another seed than that of indexes.
func SeededHash(v bson.RawValue, seed int32) int64 {
	sum := md5.Sum(appendHashInput(binary.LittleEndian.AppendUint32(nil, uint32(seed)), nil, v))
	return int64(binary.LittleEndian.Uint64(sum[:]))
}

func appendHashInput(dst []byte, name *string, v bson.RawValue) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(canonicalHashTypes[v.Type]))
	if name != nil {
		dst = append(append(dst, *name...), 0)
	}
	switch {
	case v.IsNumber():
		n, _ := args.NumberOf(v) // without its fraction
		if f, ok := v.Double(); ok && f == 1<<63 {
			n = math.MinInt64 // the first double too large is converted as the processor does it
		}
		return binary.LittleEndian.AppendUint64(dst, uint64(n))
	case v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray:
		for k, e := range bson.Raw(v.Value).All() {
			dst = appendHashInput(dst, &k, e)
		}
		return append(dst, 0, 0, 0, 0) // the end of the document, which has a type, too
	}
	return append(dst, v.Value...)
}
