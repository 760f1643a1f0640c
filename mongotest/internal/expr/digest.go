package expr

// $hash and $hexHash, and the 64-bit hash XXH64 by its public description.

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"strings"
	"unicode/utf8"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	for _, name := range []string{"$hash", "$hexHash"} {
		registerNamed(&namedOp{
			name:      name,
			notObject: parseError{srverr.FailedToParse, "%s expects an object of named arguments but found: %s", 2},
			unknown:   parseError{srverr.FailedToParse, "%s found an unknown argument: %s", 2},
			params: []parameter{{"input", &parseError{srverr.FailedToParse, "%s requires 'input' to be specified", 3}},
				{"algorithm", &parseError{srverr.FailedToParse, "%s requires 'algorithm' to be specified", 3}}},
			eval: func(st *State, n *named) (bson.RawValue, error) {
				algorithm, err := n.arg(st, 1)
				if err != nil {
					return missing, err
				}
				sum := digests[text(algorithm)]
				if !isString(algorithm) || sum == nil {
					return missing, srverr.New(srverr.FailedToParse,
						"%s requires 'algorithm' to be one of \"md5\", \"sha256\" and \"xxh64\", found: %s", name,
						Text(algorithm))
				}
				in, err := n.arg(st, 0)
				if err != nil || nullish(in) {
					return null, err
				}
				var data []byte
				if b, ok := in.Binary(); ok {
					data = b.Data
				} else if s := text(in); isString(in) && utf8.ValidString(s) {
					data = []byte(s)
				} else {
					return missing, srverr.New(srverr.TypeMismatch,
						"%s requires a valid UTF-8 string or a BinData value as its input, found: %s", name,
						typeName(in))
				}
				if err := st.copied(len(data)); err != nil {
					return missing, err
				}
				if name == "$hexHash" {
					return bsondoc.StringValue(strings.ToUpper(hex.EncodeToString(sum(data)))), nil
				}
				return bson.RawValue{Type: bson.TypeBinary,
					Value: bson.AppendBinaryValue(nil, bson.BinaryGeneric, sum(data))}, nil
			},
		})
	}
}

// digests are the algorithms.
var digests = map[string]func(data []byte) []byte{
	"md5":    func(data []byte) []byte { sum := md5.Sum(data); return sum[:] },
	"sha256": func(data []byte) []byte { sum := sha256.Sum256(data); return sum[:] },
	"xxh64":  func(data []byte) []byte { return binary.BigEndian.AppendUint64(nil, xxh64(data)) },
}

// The primes of XXH64 (xxHash fast digest algorithm, specification, "XXH64 algorithm description").
const (
	xxPrime1 uint64 = 0x9E3779B185EBCA87
	xxPrime2 uint64 = 0xC2B2AE3D27D4EB4F
	xxPrime3 uint64 = 0x165667B19E3779F9
	xxPrime4 uint64 = 0x85EBCA77C2B2AE63
	xxPrime5 uint64 = 0x27D4EB2F165667C5
)

func xxRound(acc, lane uint64) uint64 {
	return bits.RotateLeft64(acc+lane*xxPrime2, 31) * xxPrime1
}

// xxh64 is the hash with the seed 0.
func xxh64(data []byte) uint64 {
	n := uint64(len(data))
	h := xxPrime5
	if len(data) >= 32 {
		a, b := xxPrime1, xxPrime2
		acc := [4]uint64{a + b, b, 0, -a}
		for ; len(data) >= 32; data = data[32:] {
			for i := range acc {
				acc[i] = xxRound(acc[i], binary.LittleEndian.Uint64(data[8*i:]))
			}
		}
		h = bits.RotateLeft64(acc[0], 1) + bits.RotateLeft64(acc[1], 7) + bits.RotateLeft64(acc[2], 12) +
			bits.RotateLeft64(acc[3], 18)
		for _, v := range acc {
			h = (h^xxRound(0, v))*xxPrime1 + xxPrime4
		}
	}
	h += n
	for ; len(data) >= 8; data = data[8:] {
		h = bits.RotateLeft64(h^xxRound(0, binary.LittleEndian.Uint64(data)), 27)*xxPrime1 + xxPrime4
	}
	if len(data) >= 4 {
		h = bits.RotateLeft64(h^uint64(binary.LittleEndian.Uint32(data))*xxPrime1, 23)*xxPrime2 + xxPrime3
		data = data[4:]
	}
	for _, c := range data {
		h = bits.RotateLeft64(h^uint64(c)*xxPrime5, 11) * xxPrime1
	}
	h ^= h >> 33
	h *= xxPrime2
	h ^= h >> 29
	h *= xxPrime3
	return h ^ h>>32
}
