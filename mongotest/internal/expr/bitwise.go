package expr

// $bitAnd, $bitOr, $bitXor and $bitNot.

import (
	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

func init() {
	for name, op := range map[string]func(a, b int64) int64{
		"$bitAnd": func(a, b int64) int64 { return a & b },
		"$bitOr":  func(a, b int64) int64 { return a | b },
		"$bitXor": func(a, b int64) int64 { return a ^ b },
	} {
		start := int64(0)
		if name == "$bitAnd" {
			start = -1
		}
		registerNary(&naryOp{name: name, arity: any0, associative: true, commutative: true,
			eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
				n, long := start, false
				for _, v := range args {
					switch v.Type {
					case bson.TypeInt64:
						long = true
					case bson.TypeInt32:
					default:
						if nullish(v) {
							return null, nil
						}
						return missing, srverr.New(srverr.TypeMismatch, "%s only supports int and long operands.", name)
					}
					n = op(n, toLong(v))
				}
				if long {
					return bsondoc.Int64Value(n), nil
				}
				return bsondoc.Int32Value(int32(n)), nil
			}})
	}
	registerNary(&naryOp{name: "$bitNot", arity: exactly(1),
		eval: func(_ *State, args []bson.RawValue) (bson.RawValue, error) {
			switch v := args[0]; {
			case nullish(v):
				return null, nil
			case v.Type == bson.TypeInt32:
				return bsondoc.Int32Value(^toInt(v)), nil
			case v.Type == bson.TypeInt64:
				return bsondoc.Int64Value(^toLong(v)), nil
			default:
				return missing, srverr.New(28765, "$bitNot only supports int and long, not: %s.", typeName(v))
			}
		}})
}
