package encryption

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"allium/bson"
)

// Encrypted is an encrypted value of the type T: for fields of structs that a program encrypts
// itself. It goes into documents and comes out of them as its ciphertext. It prints as
// "<encrypted>". The zero Encrypted is null. A client that decrypts replies by itself cannot decode
// into one: give it a field of the type T.
type Encrypted[T any] struct{ value bson.Binary }

// Seal encrypts a value, as Client.Encrypt does.
func Seal[T any](ctx context.Context, c *Client, value T, o EncryptOptions) (Encrypted[T], error) {
	b, err := c.Encrypt(ctx, value, o)
	return Encrypted[T]{b}, err
}

// Open decrypts the value, as DecryptAs does. It is an error of the class ErrMalformed if
// there is none.
func (e Encrypted[T]) Open(ctx context.Context, c *Client) (T, error) {
	if e.IsZero() {
		var zero T
		return zero, fmt.Errorf("decrypt: %w: no value", ErrMalformed)
	}
	return DecryptAs[T](ctx, c, e.value)
}

// Binary returns the ciphertext.
func (e Encrypted[T]) Binary() bson.Binary { return e.value }

// IsZero reports whether there is no value.
func (e Encrypted[T]) IsZero() bool { return e.value.Data == nil }

const concealed = "<encrypted>"

// String returns "<encrypted>".
func (e Encrypted[T]) String() string { return concealed }

// Format prints "<encrypted>" with every verb.
func (e Encrypted[T]) Format(s fmt.State, _ rune) { io.WriteString(s, concealed) }

// LogValue returns "<encrypted>".
func (e Encrypted[T]) LogValue() slog.Value { return slog.StringValue(concealed) }

// MarshalText returns "<encrypted>", also for JSON.
func (e Encrypted[T]) MarshalText() ([]byte, error) { return []byte(concealed), nil }

// MarshalBSONValue implements bson.ValueMarshaler.
func (e Encrypted[T]) MarshalBSONValue() (byte, []byte, error) {
	if e.IsZero() {
		return byte(bson.TypeNull), nil, nil
	}
	return byte(bson.TypeBinary), bson.AppendBinaryValue(nil, e.value.Subtype, e.value.Data), nil
}

// UnmarshalBSONValue implements bson.ValueUnmarshaler. It accepts encrypted values and null.
func (e *Encrypted[T]) UnmarshalBSONValue(typ byte, data []byte) error {
	t := bson.Type(typ)
	if t == bson.TypeNull {
		*e = Encrypted[T]{}
		return nil
	}
	b, ok := (bson.RawValue{Type: t, Value: data}).Binary()
	if !ok || b.Subtype != bson.BinaryEncrypted {
		return fmt.Errorf("%w: a value of type %s, not an encrypted one", ErrMalformed, t)
	}
	e.value = bson.Binary{Subtype: b.Subtype, Data: append([]byte{}, b.Data...)}
	return nil
}
