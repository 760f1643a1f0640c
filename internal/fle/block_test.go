package fle

import (
	"encoding/binary"
	"errors"
)

// block is the metadata of one tag.
type block struct {
	Count      uint64
	Contention uint64
	Tag        Token
}

// openBlock decrypts the i-th metadata of s: server is the server token of the value, edge or text
// that it is for.
func (s *Sealed) openBlock(i int, server Token) (block, error) {
	if i < 0 || i >= len(s.blocks)/blockSize {
		return block{}, malformed("there is no tag %d", i)
	}
	b := s.blocks[i*blockSize : (i+1)*blockSize]
	zeros, err := openCTR(Zeros(server), b[countSize+32:])
	if err != nil {
		return block{}, err
	}
	for _, z := range zeros {
		if z != 0 {
			return block{}, errors.New("the metadata of the tag is for another token")
		}
	}
	counts, err := openCTR(CountAndContention(server), b[:countSize])
	if err != nil {
		return block{}, err
	}
	return block{
		Count: binary.LittleEndian.Uint64(counts), Contention: binary.LittleEndian.Uint64(counts[8:]),
		Tag: Token(b[countSize : countSize+32]),
	}, nil
}
