package field

import (
	"strings"
	"time"

	"allium/bson"
)

// Change is an update of documents of type D: a bson.D with operators as updates are.
type Change[D any] bson.D

func change[D any](op, name string, v any) Change[D] {
	return Change[D]{{Key: op, Value: bson.D{{Key: name, Value: v}}}}
}

// Update joins changes into one: those with the same operator stand side by side in it, as one
// writes them by hand. Two changes of one path are for the server to refuse. A change that is
// written by hand must have a bson.D under each operator: with another value it panics.
func Update[D any](changes ...Change[D]) Change[D] {
	// Nothing here keeps a part of what comes in but for the elements of the innermost documents,
	// so that the compiler need not put the rest of it on the heap.
	out := make(Change[D], 0, distinct(changes))
	for i, c := range changes {
		for j := range c {
			if seen(changes[:i], c[:j], c[j].Key) {
				continue
			}
			d := make(bson.D, 0, count(changes, c[j].Key))
			for _, more := range changes[i:] {
				for k := range more {
					if more[k].Key == c[j].Key {
						d = append(d, fields(more[k])...)
					}
				}
			}
			out = append(out, bson.E{Key: operator(c[j].Key), Value: d})
		}
	}
	return out
}

// fields returns what stands under an operator.
func fields(e bson.E) bson.D {
	d, ok := e.Value.(bson.D)
	if !ok {
		panic("field: update: the value of an operator is not a bson.D")
	}
	return d
}

// distinct returns how many operators changes have.
func distinct[D any](changes []Change[D]) int {
	n := 0
	for i, c := range changes {
		for j := range c {
			if !seen(changes[:i], c[:j], c[j].Key) {
				n++
			}
		}
	}
	return n
}

// seen reports whether one of the changes, or the last one's part, has the operator.
func seen[D any](changes []Change[D], last Change[D], op string) bool {
	for j := range last {
		if last[j].Key == op {
			return true
		}
	}
	for _, c := range changes {
		for j := range c {
			if c[j].Key == op {
				return true
			}
		}
	}
	return false
}

// count returns how many fields the changes have under an operator.
func count[D any](changes []Change[D], op string) int {
	n := 0
	for _, c := range changes {
		for j := range c {
			if c[j].Key == op {
				n += len(fields(c[j]))
			}
		}
	}
	return n
}

// operatorNames are the names of what changes have.
var operatorNames = [...]string{"$set", "$inc", "$unset", "$push", "$setOnInsert", "$currentDate", "$pull", "$addToSet",
	"$min", "$max", "$mul", "$rename", "$pop", "$pullAll", "$bit"}

// operator returns a name that is equal to op and does not share its memory.
func operator(op string) string {
	for _, name := range operatorNames {
		if name == op {
			return name
		}
	}
	return strings.Clone(op)
}

// Set sets the field to a value.
func Set[D, V any](p Path[D, V], v V) Change[D] { return change[D]("$set", p.at.set(), v) }

// SetOnInsert sets the field if the update inserts a document.
func SetOnInsert[D, V any](p Path[D, V], v V) Change[D] {
	return change[D]("$setOnInsert", p.at.set(), v)
}

// Unset removes fields. An element of an array becomes null.
func Unset[D any](ps ...In[D]) Change[D] {
	d := make(bson.D, len(ps))
	for i, p := range ps {
		d[i] = bson.E{Key: p.in(nil).set(), Value: ""}
	}
	return Change[D]{{Key: "$unset", Value: d}}
}

// Rename gives a field's value to another field of the same type, and removes the field.
func Rename[D, V any](from, to Path[D, V]) Change[D] {
	return change[D]("$rename", from.at.set(), to.at.set())
}

// Inc adds a number, which may be negative. A missing field counts as 0.
func Inc[D any, N Number](p Path[D, N], by N) Change[D] { return change[D]("$inc", p.at.set(), by) }

// Mul multiplies by a number. A missing field counts as 0.
func Mul[D any, N Number](p Path[D, N], by N) Change[D] { return change[D]("$mul", p.at.set(), by) }

// Min sets the field to a value if that is less, or if the field is missing.
func Min[D, V any](p Path[D, V], v V) Change[D] { return change[D]("$min", p.at.set(), v) }

// Max sets the field to a value if that is greater, or if the field is missing.
func Max[D, V any](p Path[D, V], v V) Change[D] { return change[D]("$max", p.at.set(), v) }

// CurrentDate sets the field to the server's time: a datetime, or the timestamp that it writes to
// its oplog if the field is a bson.Timestamp.
func CurrentDate[D any, T time.Time | bson.DateTime | bson.Timestamp](p Path[D, T]) Change[D] {
	var t T
	kind := "date"
	if _, ok := any(t).(bson.Timestamp); ok {
		kind = "timestamp"
	}
	return change[D]("$currentDate", p.at.set(), bson.D{{Key: "$type", Value: kind}})
}

// BitAnd keeps the bits of a number that are set in mask.
func BitAnd[D any, N Integer](p Path[D, N], mask N) Change[D] { return bit(p, "and", mask) }

// BitOr sets the bits of a number that are set in mask.
func BitOr[D any, N Integer](p Path[D, N], mask N) Change[D] { return bit(p, "or", mask) }

// BitXor turns the bits of a number that are set in mask.
func BitXor[D any, N Integer](p Path[D, N], mask N) Change[D] { return bit(p, "xor", mask) }

func bit[D any, N Integer](p Path[D, N], op string, mask N) Change[D] {
	return change[D]("$bit", p.at.set(), bson.D{{Key: op, Value: mask}})
}

// Push appends elements to an array.
func Push[D any, S ~[]E, E any](p Path[D, S], vs ...E) Change[D] {
	return change[D]("$push", p.at.set(), eachOf(vs))
}

// PushOptions say how PushEach changes the array. The zero value of a field leaves it out.
type PushOptions[E any] struct {
	// Position is the index of the first new element; negative ones count from the end. Nil
	// appends.
	Position *int
	// Sort is the order of the whole array afterwards: by fields of its elements, or by Self.
	Sort Keys[E]
	// Slice is how many elements are left in the end: the first ones, or the last ones if it is
	// negative.
	Slice *int
}

// PushEach puts elements into an array, which is then sorted and cut.
func PushEach[D any, S ~[]E, E any](p Path[D, S], vs []E, o PushOptions[E]) Change[D] {
	d := append(make(bson.D, 0, 4), bson.E{Key: "$each", Value: list(vs)})
	if o.Position != nil {
		d = append(d, bson.E{Key: "$position", Value: *o.Position})
	}
	if len(o.Sort) == 1 && o.Sort[0].Key == "" {
		d = append(d, bson.E{Key: "$sort", Value: o.Sort[0].Value})
	} else if o.Sort != nil {
		d = append(d, bson.E{Key: "$sort", Value: bson.D(o.Sort)})
	}
	if o.Slice != nil {
		d = append(d, bson.E{Key: "$slice", Value: *o.Slice})
	}
	return change[D]("$push", p.at.set(), d)
}

// AddToSet appends those elements to an array that it does not have.
func AddToSet[D any, S ~[]E, E any](p Path[D, S], vs ...E) Change[D] {
	return change[D]("$addToSet", p.at.set(), eachOf(vs))
}

// eachOf returns what is pushed: one value that is nothing else, or values under $each.
func eachOf[E any](vs []E) any {
	if len(vs) == 1 {
		if v := any(vs[0]); plainValue(v) {
			return v
		}
	}
	return bson.D{{Key: "$each", Value: list(vs)}}
}

// PopFirst removes the first element of an array.
func PopFirst[D any, S ~[]E, E any](p Path[D, S]) Change[D] {
	return change[D]("$pop", p.at.set(), -1)
}

// PopLast removes the last element of an array.
func PopLast[D any, S ~[]E, E any](p Path[D, S]) Change[D] {
	return change[D]("$pop", p.at.set(), 1)
}

// Pull removes the elements of an array that meet all conditions, which are on Self where the
// elements are no documents. It needs a condition: with none it panics, rather than empty the
// array.
func Pull[D any, S ~[]E, E any](p Path[D, S], conditions ...Filter[E]) Change[D] {
	f := And(conditions...)
	if len(f) == 0 {
		panic("field: pull from " + p.at.name + " without a condition: use Set for an empty array")
	}
	return change[D]("$pull", p.at.set(), onElement(p.at.name, f, true))
}

// PullAll removes the elements of an array that are equal to one of these.
func PullAll[D any, S ~[]E, E any](p Path[D, S], vs ...E) Change[D] {
	return change[D]("$pullAll", p.at.set(), list(vs))
}

// ArrayFilter says which elements Path.Filtered of this name means: those that meet all conditions,
// which are on Self where the elements are no documents. It goes into the option ArrayFilters.
//
//	open := field.ArrayFilter("open", paid.Eq(false))
//	o := allium.UpdateOptions{ArrayFilters: []bson.D{open}}
//	res, err := orders.UpdateOne(ctx, f, field.Set(linePaid.Filtered("open"), true), o)
func ArrayFilter[E any](name string, conditions ...Filter[E]) bson.D {
	f := And(conditions...)
	if len(f) == 0 {
		panic("field: array filter " + name + " without a condition: use Each for all elements")
	}
	return named(name, bson.D(f))
}

// named returns a filter whose fields are those of what is called name.
func named(name string, f bson.D) bson.D {
	out := make(bson.D, len(f))
	for i, e := range f {
		switch {
		case e.Key == "":
			e.Key = name
		case e.Key[0] != '$':
			e.Key = name + "." + e.Key
		default:
			if a, ok := e.Value.(bson.A); ok {
				inner := make(bson.A, len(a))
				for j, v := range a {
					inner[j] = v
					if d, ok := v.(bson.D); ok {
						inner[j] = named(name, d)
					}
				}
				e.Value = inner
			}
		}
		out[i] = e
	}
	return out
}
