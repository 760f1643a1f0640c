package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// coder compresses and decompresses the part of a message after its header. Both functions append
// to dst; decompress must not append more than size bytes, whatever src is.
type coder struct {
	compress   func(dst, src []byte, zlibLevel int) ([]byte, error)
	decompress func(dst, src []byte, size int) ([]byte, error)
}

var coders = [...]coder{
	Noop:   {noopCompress, noopDecompress},
	Snappy: {snappyCompress, snappyDecompress},
	Zlib:   {zlibCompress, zlibDecompress},
	Zstd:   {zstdCompress, zstdDecompress},
}

func noopCompress(dst, src []byte, _ int) ([]byte, error) { return append(dst, src...), nil }

func noopDecompress(dst, src []byte, size int) ([]byte, error) {
	if len(src) != size {
		return dst, fmt.Errorf("there are %d bytes, message says %d", len(src), size)
	}
	return append(dst, src...), nil
}

func snappyCompress(dst, src []byte, _ int) ([]byte, error) {
	start, most := len(dst), snappy.MaxEncodedLen(len(src))
	if most < 0 {
		return dst, errors.New("message is too large")
	}
	dst = slices.Grow(dst, most)
	out := snappy.Encode(dst[start:start+most], src)
	return dst[:start+len(out)], nil
}

// snappyMaxRatio is more than snappy can compress: an element of 3 bytes stands for at most 64.
const snappyMaxRatio = 22

func snappyDecompress(dst, src []byte, size int) ([]byte, error) {
	n, err := snappy.DecodedLen(src)
	if err != nil {
		return dst, err
	}
	if n != size {
		return dst, fmt.Errorf("data says that it holds %d bytes, message says %d", n, size)
	}
	if int64(size) > snappyMaxRatio*(int64(len(src))+1) {
		return dst, fmt.Errorf("%d bytes cannot hold %d", len(src), size)
	}
	start := len(dst)
	dst = slices.Grow(dst, size)
	if _, err := snappy.Decode(dst[start:start+size], src); err != nil {
		return dst[:start], err
	}
	return dst[:start+size], nil
}

// The coders of zlib are pooled per level; what the pools hold, the garbage collector may take.
var (
	zlibWriters [11]sync.Pool // of *zlib.Writer, by level from -1
	zlibReaders sync.Pool     // of *zlibReader
)

// zlibReader keeps the source beside its reader, so that neither is allocated again.
type zlibReader struct {
	src bytes.Reader
	r   io.ReadCloser
}

func zlibCompress(dst, src []byte, level int) ([]byte, error) {
	if level < -1 || level > 9 {
		return dst, fmt.Errorf("there is no level %d", level)
	}
	out := &appender{dst}
	w, ok := zlibWriters[level+1].Get().(*zlib.Writer)
	if !ok {
		var err error
		if w, err = zlib.NewWriterLevel(out, level); err != nil {
			return dst, err
		}
	} else {
		w.Reset(out)
	}
	_, err := w.Write(src)
	if err == nil {
		err = w.Close()
	}
	w.Reset(io.Discard) // lets go of dst
	zlibWriters[level+1].Put(w)
	return out.b, err
}

type appender struct{ b []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.b = append(a.b, p...)
	return len(p), nil
}

func zlibDecompress(dst, src []byte, size int) ([]byte, error) {
	z, ok := zlibReaders.Get().(*zlibReader)
	if !ok {
		z = new(zlibReader)
	}
	z.src.Reset(src)
	defer func() {
		z.src.Reset(nil) // lets go of src
		zlibReaders.Put(z)
	}()
	var err error
	if z.r == nil {
		z.r, err = zlib.NewReader(&z.src)
	} else {
		err = z.r.(zlib.Resetter).Reset(&z.src, nil)
	}
	if err != nil {
		return dst, err
	}
	start := len(dst)
	dst, err = readGrowing(dst, z.r, size)
	if err != nil {
		return dst[:start], err
	}
	var more [1]byte
	switch n, err := io.ReadFull(z.r, more[:]); {
	case n > 0:
		return dst[:start], fmt.Errorf("data holds more than %d bytes", size)
	case err != io.EOF: // the checksum is at the end
		return dst[:start], err
	}
	return dst, nil
}

// growth bounds how much memory is taken before as much data has turned up.
const growth = 1 << 20

// readGrowing appends size bytes that it reads from r. It does not trust size with more memory than
// what was read already, or a little.
func readGrowing(dst []byte, r io.Reader, size int) ([]byte, error) {
	for size > 0 {
		n := min(size, max(growth, len(dst)))
		start := len(dst)
		dst = slices.Grow(dst, n)[:start+n]
		read, err := io.ReadFull(r, dst[start:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return dst[:start+read], err
		}
		size -= n
	}
	return dst, nil
}

// zstdWindow bounds the memory that a coder of zstd keeps, and that a message may make the decoder
// take beside its output.
const (
	zstdEncoderWindow = 1 << 20
	zstdDecoderWindow = 64 << 20
)

// One encoder and one decoder serve the process: each runs at most GOMAXPROCS messages at a time
// and keeps that many states.
var (
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithWindowSize(zstdEncoderWindow), zstd.WithLowerEncoderMem(true))
	})
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(zstdDecoderWindow), zstd.WithDecodeAllCapLimit(true))
	})
)

func zstdCompress(dst, src []byte, _ int) ([]byte, error) {
	enc, err := zstdEncoder()
	if err != nil {
		return dst, err
	}
	return enc.EncodeAll(src, dst), nil
}

// zstdMaxRatio is more than zstd can compress: a block of 4 bytes stands for at most 128 KiB.
const zstdMaxRatio = 128 << 10 / 4

func zstdDecompress(dst, src []byte, size int) ([]byte, error) {
	dec, err := zstdDecoder()
	if err != nil {
		return dst, err
	}
	var frame zstd.Header
	if err := frame.Decode(src); err != nil {
		return dst, err
	}
	if frame.HasFCS && frame.FrameContentSize > uint64(size) {
		return dst, fmt.Errorf("data says that it holds %d bytes, message says %d", frame.FrameContentSize, size)
	}
	if int64(size) > zstdMaxRatio*(int64(len(src))+1) {
		return dst, fmt.Errorf("%d bytes cannot hold %d", len(src), size)
	}
	start := len(dst)
	dst = slices.Grow(dst, size)
	out, err := dec.DecodeAll(src, dst[:start:start+size])
	if err != nil {
		return dst[:start], err
	}
	return dst[:len(out)], nil
}
