//go:build libmongocrypt

package libmongocrypt

// #cgo CFLAGS: -I/usr/include/mongocrypt
// #cgo LDFLAGS: -lmongocrypt
// #include <mongocrypt.h>
// #include <stdlib.h>
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"allium/bson"
)

// library is a handle of libmongocrypt with local keys.
type library struct {
	crypt *C.mongocrypt_t
	// keys are the documents of the data keys, which the library asks for by filters.
	keys []bson.Raw
}

// binary is a buffer that the library reads. The memory is C's: the library keeps pointers to it.
func binary(data []byte) (b *C.mongocrypt_binary_t, free func()) {
	memory := C.CBytes(data)
	b = C.mongocrypt_binary_new_from_data((*C.uint8_t)(memory), C.uint32_t(len(data)))
	return b, func() {
		C.mongocrypt_binary_destroy(b)
		C.free(memory)
	}
}

func newLibrary(master []byte, keys ...bson.Raw) (*library, error) {
	l := &library{crypt: C.mongocrypt_new(), keys: keys}
	start, doc := bson.BeginDocument(nil)
	local, doc := bson.BeginDocumentElement(doc, "local")
	doc = bson.EndDocument(bson.AppendBinary(doc, "key", 0, master), local)
	providers, free := binary(bson.EndDocument(doc, start))
	defer free()
	if !C.mongocrypt_setopt_kms_providers(l.crypt, providers) || !C.mongocrypt_init(l.crypt) {
		return nil, l.err()
	}
	return l, nil
}

func (l *library) close() { C.mongocrypt_destroy(l.crypt) }

func message(status *C.mongocrypt_status_t) error {
	defer C.mongocrypt_status_destroy(status)
	return errors.New(C.GoString(C.mongocrypt_status_message(status, nil)))
}

func (l *library) err() error {
	status := C.mongocrypt_status_new()
	C.mongocrypt_status(l.crypt, status)
	return message(status)
}

func version() string { return C.GoString(C.mongocrypt_version(nil)) }

// run takes a context through its states to the result.
func (l *library) run(ctx *C.mongocrypt_ctx_t) (bson.Raw, error) {
	fail := func() error {
		status := C.mongocrypt_status_new()
		C.mongocrypt_ctx_status(ctx, status)
		return message(status)
	}
	for {
		switch state := C.mongocrypt_ctx_state(ctx); state {
		case C.MONGOCRYPT_CTX_NEED_MONGO_KEYS:
			for _, key := range l.keys {
				reply, free := binary(key)
				ok := C.mongocrypt_ctx_mongo_feed(ctx, reply)
				free()
				if !ok {
					return nil, fail()
				}
			}
			if !C.mongocrypt_ctx_mongo_done(ctx) {
				return nil, fail()
			}
		case C.MONGOCRYPT_CTX_READY:
			out := C.mongocrypt_binary_new()
			defer C.mongocrypt_binary_destroy(out)
			if !C.mongocrypt_ctx_finalize(ctx, out) {
				return nil, fail()
			}
			return C.GoBytes(unsafe.Pointer(C.mongocrypt_binary_data(out)), C.int(C.mongocrypt_binary_len(out))), nil
		case C.MONGOCRYPT_CTX_ERROR:
			return nil, fail()
		default:
			return nil, fmt.Errorf("unexpected state %d", state)
		}
	}
}

// encrypt encrypts the value of the field v of a document. The result has the field v, too.
func (l *library) encrypt(doc bson.Raw, key bson.UUID, algorithm string) (bson.Raw, error) {
	ctx := C.mongocrypt_ctx_new(l.crypt)
	defer C.mongocrypt_ctx_destroy(ctx)
	id, free := binary(key[:])
	defer free()
	name := C.CString(algorithm)
	defer C.free(unsafe.Pointer(name))
	in, freeIn := binary(doc)
	defer freeIn()
	if !C.mongocrypt_ctx_setopt_key_id(ctx, id) || !C.mongocrypt_ctx_setopt_algorithm(ctx, name, -1) ||
		!C.mongocrypt_ctx_explicit_encrypt_init(ctx, in) {
		return l.run(ctx) // which returns the error
	}
	return l.run(ctx)
}

// decrypt decrypts a document.
func (l *library) decrypt(doc bson.Raw) (bson.Raw, error) {
	ctx := C.mongocrypt_ctx_new(l.crypt)
	defer C.mongocrypt_ctx_destroy(ctx)
	in, free := binary(doc)
	defer free()
	C.mongocrypt_ctx_decrypt_init(ctx, in)
	return l.run(ctx)
}
