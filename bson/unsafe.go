package bson

// This file is the package's only one that imports unsafe. Why it is sound:
//
//   - A ptr points at a Go variable of a type that its user knows: the compiled codec of a type is
//     only ever called with a ptr to a variable of that type. It is made from reflect (a non-nil
//     pointer, or an element of a slice that reflect made) or from the data word of an interface
//     value, and it moves only by an offset that reflect gave for a field of that type, or by whole
//     elements within a slice's length. So it never leaves the variable that it was made from, and
//     every access has the type and alignment of what lies there.
//   - The garbage collector sees a ptr, because it holds an unsafe.Pointer; no address is ever kept
//     as an integer.
//   - Pointers are written through *unsafe.Pointer or by reflect, so write barriers happen.
//   - The data word of an interface value points at memory that Go treats as immutable. Encoding
//     only reads, and where a method with a pointer receiver could write, the value is copied first
//     (see typeCodec.copies).
//   - viewString shares memory with bytes that nobody writes to while the string is in use: Raw's
//     documentation asks that of its users. The decoder asks it of nobody: its strings lie in
//     memory of its own, and it writes the bytes of a string before the string is made and never
//     after.
//   - boxed builds an interface value out of a type word that the compiler or reflect made and a
//     pointer to a variable of that type, for types that interfaces hold by pointer. The variable
//     is never written again. retyped changes the type word for that of another map type: both have
//     one underlying type.

import (
	"reflect"
	"unsafe"
)

// viewString returns b as a string that shares its memory. It is sound as long as nobody writes to
// b while the string is in use, which is what Raw's documentation asks of its users.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// viewBytes returns the bytes of s, which nobody may write to.
func viewBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// ptr is the address of a Go variable whose type the user of the ptr knows.
type ptr struct{ p unsafe.Pointer }

// at is the variable that p points at, which must be a T or a type with T as its underlying type.
func at[T any](p ptr) *T { return (*T)(p.p) }

// add returns the address of a field at the offset off, or of an element of a slice or array.
func (p ptr) add(off uintptr) ptr { return ptr{unsafe.Add(p.p, off)} }

// elem returns the pointer that the variable at p holds.
func (p ptr) elem() ptr { return ptr{*(*unsafe.Pointer)(p.p)} }

// setElem sets the pointer that the variable at p holds.
func (p ptr) setElem(q ptr) { *(*unsafe.Pointer)(p.p) = q.p }

func (p ptr) isNil() bool { return p.p == nil }

// value returns the variable at p as an addressable, settable reflect.Value.
func (p ptr) value(t reflect.Type) reflect.Value { return reflect.NewAt(t, p.p).Elem() }

// bytes returns the n bytes at p, which must be an array of bytes.
func (p ptr) bytes(n int) []byte { return unsafe.Slice((*byte)(p.p), n) }

// pointerOf returns the pointer in v, which is of kind pointer.
func pointerOf(v reflect.Value) ptr { return ptr{v.UnsafePointer()} }

// sliceHeader is the layout of every slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// slice returns the address of the first element and the length of the slice at p.
func (p ptr) slice() (first ptr, n int) {
	h := (*sliceHeader)(p.p)
	return ptr{h.data}, h.len
}

// makeSlice puts a new slice of length n at p, which is a slice of type t, and returns the address
// of the first element.
func (p ptr) makeSlice(t reflect.Type, n int) ptr {
	v := p.value(t)
	if n == 0 {
		v.Set(reflect.MakeSlice(t, 0, 0)) // empty, not nil
		return ptr{}
	}
	*(*sliceHeader)(p.p) = sliceHeader{}
	v.Grow(n)
	v.SetLen(n)
	return ptr{(*sliceHeader)(p.p).data}
}

// headerAt returns the address of h, for use as a slice.
func headerAt(h *sliceHeader) ptr { return ptr{unsafe.Pointer(h)} }

// eface is the layout of an interface value without methods.
type eface struct {
	typ, data unsafe.Pointer
}

// word returns the data word of v: for a pointer it is the pointer itself, for a type that
// interfaces hold by pointer (see heldByPointer) it is the address of the value.
func word(v any) ptr { return ptr{(*eface)(unsafe.Pointer(&v)).data} }

// wordVariable returns the address of a new variable that holds the data word of v, for types that
// are themselves a pointer, like maps.
func wordVariable(v any) ptr {
	w := new(unsafe.Pointer)
	*w = (*eface)(unsafe.Pointer(&v)).data
	return ptr{unsafe.Pointer(w)}
}

// typeOf is the type word of an interface value.
type typeOf = unsafe.Pointer

// typeWord returns the type word of v.
func typeWord(v any) typeOf { return (*eface)(unsafe.Pointer(&v)).typ }

var (
	stringWord   = typeWord("")
	float64Word  = typeWord(float64(0))
	int32Word    = typeWord(int32(0))
	int64Word    = typeWord(int64(0))
	dateTimeWord = typeWord(DateTime(0))
	objectIDWord = typeWord(ObjectID{})
	dWord        = typeWord(D{})
	aWord        = typeWord(A{})
)

// retyped returns v with another type word, of a type with the same underlying type.
func retyped(v any, typ typeOf) any {
	(*eface)(unsafe.Pointer(&v)).typ = typ
	return v
}

// boxed returns the interface value with this type word and p as its data word; see the top of the
// file.
func boxed[T any](typ unsafe.Pointer, p *T) (v any) {
	e := (*eface)(unsafe.Pointer(&v))
	e.typ, e.data = typ, unsafe.Pointer(p)
	return v
}

// heldByPointer reports whether an interface surely holds values of type t by pointer. Types of a
// pointer's size may be held as the word itself; which ones is the compiler's business, so only
// those are answered for that can hold no pointer at all.
func heldByPointer(t reflect.Type) bool {
	if t.Size() != unsafe.Sizeof(unsafe.Pointer(nil)) {
		return true
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Float32, reflect.Float64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Complex64, reflect.String, reflect.Interface, reflect.Slice:
		return true
	}
	return false
}
