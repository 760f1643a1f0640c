package bson

// Memory for what a decoder makes: many small values share few allocations.

// slab hands out variables of type T from chunks. A value that is kept keeps its chunk alive, so chunks are small.
type slab[T any] struct {
	free []T
	next int // length of the next chunk
}

// reserve makes sure that the next n variables come out of one chunk.
func (s *slab[T]) reserve(n int) {
	if n > len(s.free) {
		s.free = make([]T, n)
	}
}

// take returns a new variable. Chunks double up to most.
func (s *slab[T]) take(most int) *T {
	if len(s.free) == 0 {
		s.next = min(max(2*s.next, 1), most)
		s.free = make([]T, s.next)
	}
	p := &s.free[0]
	s.free = s.free[1:]
	return p
}

// Chunks of numbers hold no pointers and outlive a document in the decoder's pool; the others do not, so that one
// document's values keep nothing of another's alive.
const (
	numberChunk = 64
	idChunk     = 32
	headerChunk = 32
	windowSize  = 8192
	firstChunk  = 64
	soloString  = 2048
)

// str returns a string with these bytes, which must lie in d.data.
//
// The strings of a document share memory, in one of two ways. Where most of the document becomes strings, in D and M
// with their keys, they are cut from a window: a copy of a stretch of the document. In structs, which have no use
// for the keys, each is copied into a chunk. A long string gets memory of its own.
func (d *decoder) str(b []byte) string {
	n := len(b)
	if n == 0 {
		return ""
	}
	if d.dense {
		// Slices of one array differ in capacity by how far they start from each other.
		off := d.capacity - cap(b)
		if rel := off - d.windowStart; uint(rel) < uint(len(d.window)) && n <= len(d.window)-rel {
			return d.window[rel : rel+n]
		}
		return d.newWindow(off, n)
	}
	if n > len(d.chunk) {
		if n >= soloString {
			return string(b)
		}
		d.newChunk(n)
	}
	// What is handed out is never written again.
	copy(d.chunk, b)
	s := viewString(d.chunk[:n])
	d.chunk = d.chunk[n:]
	d.text += n
	return s
}

func (d *decoder) newWindow(off, n int) string {
	if n >= soloString {
		return string(d.data[off : off+n])
	}
	size := min(max(n, windowSize), len(d.data)-off)
	d.windowStart, d.window = off, string(d.data[off:off+size])
	return d.window[:n]
}

func (d *decoder) newChunk(n int) {
	size := min(max(d.chunkSize, n), len(d.data))
	d.chunkSize = min(2*size, windowSize)
	d.chunk = make([]byte, size)
}

func (d *decoder) boxString(s string) any {
	p := d.strings.take(numberChunk)
	*p = s
	return boxed(stringWord, p)
}

func (d *decoder) boxFloat64(f float64) any {
	p := d.floats.take(numberChunk)
	*p = f
	return boxed(float64Word, p)
}

func (d *decoder) boxInt32(n int32) any {
	if uint32(n) < 256 {
		return n // the runtime has these at hand
	}
	p := d.int32s.take(numberChunk)
	*p = n
	return boxed(int32Word, p)
}

func (d *decoder) boxInt64(n int64) any {
	if uint64(n) < 256 {
		return n
	}
	p := d.int64s.take(numberChunk)
	*p = n
	return boxed(int64Word, p)
}

func (d *decoder) boxDateTime(t DateTime) any {
	p := d.int64s.take(numberChunk)
	*p = int64(t)
	return boxed(dateTimeWord, p)
}

func (d *decoder) boxObjectID(b []byte) any {
	p := d.ids.take(idChunk)
	copy(p[:], b)
	return boxed(objectIDWord, p)
}

func (d *decoder) boxD(doc D) any {
	p := d.documents.take(headerChunk)
	*p = doc
	return boxed(dWord, p)
}

func (d *decoder) boxA(a A) any {
	p := d.arrays.take(headerChunk)
	*p = a
	return boxed(aWord, p)
}

// elements returns an empty D with room for n elements. Small ones share chunks; rest is how many bytes of the
// document are left, which bounds how many more elements there can be.
func (d *decoder) elements(n, rest int) D {
	if n == 0 {
		return D{}
	}
	if n > len(d.slots) {
		if n > 16 {
			return make(D, 0, n)
		}
		d.slots = make([]E, max(n, min(rest/16, 48)))
	}
	out := d.slots[:0:n]
	d.slots = d.slots[n:]
	return D(out)
}

// values is elements for arrays.
func (d *decoder) values(n, rest int) A {
	if n == 0 {
		return A{}
	}
	if n > len(d.cells) {
		if n > 32 {
			return make(A, 0, n)
		}
		d.cells = make([]any, max(n, min(rest/12, 64)))
	}
	out := d.cells[:0:n]
	d.cells = d.cells[n:]
	return A(out)
}
