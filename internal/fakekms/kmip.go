package fakekms

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
)

// This file is a KMIP server with the operations that in-use encryption needs. It has a reader and
// a writer of messages of its own, so that it does not share the mistakes of those that it tests.

// object is a secret or a key that the server keeps.
type object struct {
	data      []byte
	symmetric bool
	active    bool
}

func (s *Server) serveKMIP() error {
	l, err := s.listen(portKMIP)
	if err != nil {
		return err
	}
	l = tls.NewListener(l, s.settings(valid, true))
	s.done.Go(func() { s.accept(l, s.converse) })
	return nil
}

func (s *Server) converse(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		head, err := in.Peek(8)
		if err != nil {
			return
		}
		n := binary.BigEndian.Uint32(head[4:])
		if n > 1<<20 {
			return
		}
		message := make([]byte, 8+int(n))
		if _, err := io.ReadFull(in, message); err != nil {
			return
		}
		if _, err := conn.Write(s.kmip(message)); err != nil {
			return
		}
	}
}

// walk calls f with every item of a message, structures before what they hold.
func walk(data []byte, f func(tag uint32, kind byte, value []byte)) {
	for len(data) >= 8 {
		tag := uint32(data[0])<<16 | uint32(data[1])<<8 | uint32(data[2])
		n := int(binary.BigEndian.Uint32(data[4:]))
		padded := (n + 7) &^ 7
		if n < 0 || padded > len(data)-8 {
			return
		}
		value := data[8 : 8+n]
		f(tag, data[3], value)
		if data[3] == 1 {
			walk(value, f)
		}
		data = data[8+padded:]
	}
}

// put builds an item of a message.
func put(tag uint32, kind byte, value []byte) []byte {
	out := []byte{byte(tag >> 16), byte(tag >> 8), byte(tag), kind}
	out = binary.BigEndian.AppendUint32(out, uint32(len(value)))
	out = append(out, value...)
	for len(out)%8 != 0 {
		out = append(out, 0)
	}
	return out
}

func putNumber(tag uint32, kind byte, n uint32) []byte {
	return put(tag, kind, binary.BigEndian.AppendUint32(nil, n))
}

func putStruct(tag uint32, items ...[]byte) []byte { return put(tag, 1, bytes.Join(items, nil)) }

// kmip answers a request.
func (s *Server) kmip(message []byte) []byte {
	var operation, kind, minor uint32
	var id string
	var material, data, nonce []byte
	walk(message, func(tag uint32, _ byte, value []byte) {
		switch tag {
		case 0x42005C:
			operation = binary.BigEndian.Uint32(value)
		case 0x420057:
			kind = binary.BigEndian.Uint32(value)
		case 0x42006B:
			minor = binary.BigEndian.Uint32(value)
		case 0x420094:
			id = string(value)
		case 0x420043:
			material = bytes.Clone(value)
		case 0x4200C2:
			data = bytes.Clone(value)
		case 0x42003D:
			nonce = bytes.Clone(value)
		}
	})
	s.saw(Request{Host: "kmip", Path: strconv.FormatUint(uint64(operation), 16)})
	s.mu.Lock()
	defer s.mu.Unlock()
	object_, found := s.objects[id]
	var payload [][]byte
	const notFound, invalid, unsupported = 1, 7, 5
	switch operation {
	case 1, 3: // create, register
		s.nextID++
		id = strconv.Itoa(s.nextID)
		switch {
		case operation == 3 && kind == 7 && len(material) > 0:
			s.objects[id] = object{data: material}
		case operation == 1 && kind == 2:
			key := make([]byte, 32)
			rand.Read(key)
			s.objects[id] = object{data: key, symmetric: true}
		default:
			return failed(minor, operation, invalid, "invalid object")
		}
		payload = append(payload, put(0x420094, 7, []byte(id)))
	case 0x12: // activate
		if !found {
			return failed(minor, operation, notFound, fmt.Sprintf("Could not locate object: %s", id))
		}
		object_.active = true
		s.objects[id] = object_
		payload = append(payload, put(0x420094, 7, []byte(id)))
	case 0x0A: // get
		if !found || object_.symmetric {
			return failed(minor, operation, notFound, fmt.Sprintf("Could not locate object: %s", id))
		}
		payload = append(payload, putNumber(0x420057, 5, 7), put(0x420094, 7, []byte(id)),
			putStruct(0x420085, putNumber(0x420086, 5, 2),
				putStruct(0x420040, putNumber(0x420042, 5, 2), putStruct(0x420045, put(0x420043, 8, object_.data)))))
	case 0x1F, 0x20: // encrypt, decrypt
		if !found || !object_.symmetric {
			return failed(minor, operation, notFound, fmt.Sprintf("Could not locate object: %s", id))
		}
		block, err := aes.NewCipher(object_.data)
		if err != nil {
			return failed(minor, operation, invalid, err.Error())
		}
		payload = append(payload, put(0x420094, 7, []byte(id)))
		if operation == 0x1F {
			pad := 16 - len(data)%16
			data = append(data, bytes.Repeat([]byte{byte(pad)}, pad)...)
			nonce = make([]byte, 16)
			rand.Read(nonce)
			cipher.NewCBCEncrypter(block, nonce).CryptBlocks(data, data)
			payload = append(payload, put(0x4200C2, 8, data), put(0x42003D, 8, nonce))
			break
		}
		if len(nonce) != 16 || len(data) == 0 || len(data)%16 != 0 {
			return failed(minor, operation, invalid, "malformed ciphertext")
		}
		cipher.NewCBCDecrypter(block, nonce).CryptBlocks(data, data)
		data, ok := unpad(data)
		if !ok {
			return failed(minor, operation, 10, "bad padding")
		}
		payload = append(payload, put(0x4200C2, 8, data))
	default:
		return failed(minor, operation, unsupported, "operation not supported")
	}
	return response(minor, operation, putNumber(0x42007F, 5, 0), putStruct(0x42007C, payload...))
}

// unpad takes off the padding of PKCS #5, all of which must be right.
func unpad(data []byte) ([]byte, bool) {
	pad := int(data[len(data)-1])
	if pad == 0 || pad > 16 || pad > len(data) {
		return nil, false
	}
	data, tail := data[:len(data)-pad], data[len(data)-pad:]
	return data, bytes.Count(tail, tail[pad-1:]) == pad
}

func failed(minor, operation, reason uint32, message string) []byte {
	return response(minor, operation, putNumber(0x42007F, 5, 1), putNumber(0x42007E, 5, reason),
		put(0x42007D, 7, []byte(message)))
}

func response(minor, operation uint32, items ...[]byte) []byte {
	return putStruct(0x42007B,
		putStruct(0x42007A,
			putStruct(0x420069, putNumber(0x42006A, 2, 1), putNumber(0x42006B, 2, minor)),
			put(0x420092, 9, make([]byte, 8)), putNumber(0x42000D, 2, 1)),
		putStruct(0x42000F, append([][]byte{putNumber(0x42005C, 5, operation)}, items...)...))
}
