package bson

// Memory for what a decoder makes: many small values share few allocations.

import "reflect"

// slab hands out variables of type T from chunks.
type slab[T any] struct {
	chunk  []T
	used   int // of chunk
	wanted int // how many more there will probably be
	size   int // of the last chunk
}

// expect announces that n variables will be taken.
func (s *slab[T]) expect(n int) { s.wanted = max(n-(len(s.chunk)-s.used), 0) }

// take returns a new variable. A chunk has what is expected, or else twice as many as the last one,
// and never more than most: a value that is kept keeps its chunk alive.
func (s *slab[T]) take(most int) *T {
	if s.used == len(s.chunk) {
		s.grow(most)
	}
	p := &s.chunk[s.used]
	s.used++
	return p
}

func (s *slab[T]) grow(most int) {
	if s.size *= 2; s.wanted > 0 {
		s.size = s.wanted
	}
	s.size = min(max(s.size, 1), most)
	s.wanted -= min(s.size, s.wanted)
	s.chunk, s.used = make([]T, s.size), 0
}

// block hands out slices of type T from chunks.
type block[T any] struct {
	free   []T
	wanted int
}

// expect announces that n elements in all will be taken.
func (s *block[T]) expect(n int) { s.wanted = n }

// take returns a new slice of length n. Small ones share chunks of up to most elements.
func (s *block[T]) take(n, most int) []T {
	if n == 0 {
		return []T{}
	}
	if n > len(s.free) {
		if n >= most {
			s.wanted -= n
			return make([]T, n)
		}
		s.free = make([]T, max(n, min(s.wanted, most)))
	}
	s.wanted -= n
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// elems hands out variables for pointers of one type to point to. There are slabs only for small
// ones, and chunks are short: what a pointer points to may be all that is kept of a document.
type elems struct {
	of   *typeCodec
	free sliceHeader // the chunk
	used int
}

const (
	mostElems    = 16
	mostElemSize = 128
)

// newElem returns a new variable of c's type. slice is the type of slices of them.
func (d *decoder) newElem(c *typeCodec, slice reflect.Type) ptr {
	size := c.t.Size()
	if size > mostElemSize {
		return pointerOf(reflect.New(c.t))
	}
	for i := range d.elems {
		e := &d.elems[i]
		if e.of != c {
			continue
		}
		if e.used == e.free.len {
			n := min(max(2*e.free.len, 2), mostElems)
			headerAt(&e.free).makeSlice(slice, n)
			e.used = 0
		}
		first, _ := headerAt(&e.free).slice()
		e.used++
		return first.add(uintptr(e.used-1) * size)
	}
	// The first one, and with most documents the only one, is alone.
	d.elems = append(d.elems, elems{of: c})
	return pointerOf(reflect.New(c.t))
}

// Chunks of numbers hold no pointers and outlive a document in the decoder's pool; the others do
// not, so that one document's values keep nothing of another's alive.
const (
	numberChunk = 64
	idChunk     = 32
	stringChunk = 128
	headerChunk = 32
	slotBlock   = 64
	cellBlock   = 64
	firstChunk  = 64   // bytes of strings
	largeChunk  = 8192 // bytes of strings
	soloString  = 2048 // strings from this length on have memory of their own
)

// str returns a string with these bytes. The strings of a document share chunks of memory. A long
// string gets memory of its own. In a tree with a window, b must be a part of it that was not cut
// in capacity.
func (d *decoder) str(b []byte) string {
	if d.window != "" {
		// Slices of one array differ in capacity by how far they start from each other.
		return d.window[d.windowCap-cap(b):][:len(b)]
	}
	return d.copied(b)
}

// copied is str without a window.
func (d *decoder) copied(b []byte) string {
	n := len(b)
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

func (d *decoder) newChunk(n int) {
	size := min(max(d.chunkSize, n), len(d.data))
	d.chunkSize = min(2*size, largeChunk)
	d.chunk = make([]byte, size)
}

func (d *decoder) boxString(s string) any {
	p := d.strings.take(stringChunk)
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
	if w := d.cfg.documents.word; w != nil {
		return boxed(w, p)
	}
	return boxed(dWord, p)
}

func (d *decoder) boxA(a A) any {
	p := d.arrays.take(headerChunk)
	*p = a
	if w := d.cfg.arrays.word; w != nil {
		return boxed(w, p)
	}
	return boxed(aWord, p)
}
