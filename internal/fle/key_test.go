package fle

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
)

// TestCopiesOfKeys looks for a key in everything on the heap, dead or alive: after much work by
// many goroutines there is the material and one schedule of each cipher, and after Clear nothing.
func TestCopiesOfKeys(t *testing.T) {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" || testing.Short() {
		t.Skip("the heap is written to a file")
	}
	material := make([]byte, KeySize)
	rand.Read(material)
	k, err := NewKey(material)
	if err != nil {
		t.Fatal(err)
	}
	// What is looked for must not be found in the test's own memory.
	inverted := make([]byte, KeySize)
	for i := range material {
		inverted[i] = ^material[i]
	}
	clear(material)
	count := func(from int) int {
		t.Helper()
		runtime.GC()
		f, err := os.Create(filepath.Join(t.TempDir(), "heap"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		debug.WriteHeapDump(f.Fd())
		heap, err := os.ReadFile(f.Name())
		if err != nil || len(heap) == 0 {
			t.Fatalf("a heap of %d bytes, %v", len(heap), err)
		}
		part := make([]byte, 32)
		for i := range part {
			part[i] = ^inverted[from+i]
		}
		n := bytes.Count(heap, part)
		clear(part)
		return n
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				csfle, err := k.SealRandom(nil, []byte("a"), []byte("some value of three blocks or so"), rand.Reader)
				qe, err2 := k.SealQE(nil, []byte("a"), []byte("value"), rand.Reader)
				_, err3 := k.Open(nil, []byte("a"), csfle)
				_, err4 := k.OpenQE(nil, []byte("a"), qe)
				if err != nil || err2 != nil || err3 != nil || err4 != nil {
					t.Error(err, err2, err3, err4)
				}
			}
		})
	}
	wg.Wait()
	for name, from := range map[string]int{"CSFLE": 32, "Queryable Encryption": 0} {
		if n := count(from); n < 2 || n > 3 {
			t.Errorf("%s: %d copies of the key", name, n)
		}
	}
	k.Clear()
	runtime.GC()
	for _, from := range []int{0, 32} {
		if n := count(from); n > 0 {
			t.Errorf("%d copies of the key after Clear", n)
		}
	}
	runtime.KeepAlive(k)
}

// TestClear: nothing that follows from a key is left in it.
func TestClear(t *testing.T) {
	material := make([]byte, KeySize)
	rand.Read(material)
	k, err := NewKey(material)
	if err != nil {
		t.Fatal(err)
	}
	k.SealQE(nil, nil, []byte("a"), rand.Reader)
	k.SealRandom(nil, nil, []byte("a"), rand.Reader)
	if *k.Tokens() == (Tokens{}) {
		t.Fatal("no tokens")
	}
	k.Clear()
	if k.tokens != (Tokens{}) || k.material != [KeySize]byte{} || k.blocks[0].of != nil || k.blocks[1].of != nil {
		t.Error("something of the key is left")
	}
}

// TestPadding opens ciphertexts whose tag fits and whose padding does not.
func TestPadding(t *testing.T) {
	k, err := NewKey(bytes.Repeat([]byte{1}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	for _, last := range []byte{0, 1, 16, 17, 255} {
		s := k.csfleState()
		sealed := make([]byte, 3*16)
		sealed[len(sealed)-1] = last
		encryptCBC(s.block, sealed[:16], sealed[16:])
		sealed = append(sealed, s.mac([]byte("a"), sealed, true)...)
		got, err := k.Open(nil, []byte("a"), sealed)
		if good := last == 1 || last == 16; good != (err == nil) || err != nil && (!errors.Is(err, ErrPadding) || len(got) > 0) {
			t.Errorf("%d: %x, %v", last, got, err)
		}
	}
}

// What is too short to have a byte behind its initialization vector is no ciphertext.
func TestShortCounterMode(t *testing.T) {
	for n := range ivSize + 2 {
		if out, err := openCTR(Token{}, make([]byte, n)); errors.Is(err, ErrShort) != (n <= ivSize) || (err == nil) != (len(out) == 1) {
			t.Errorf("%d bytes: %d, %v", n, len(out), err)
		}
	}
}
