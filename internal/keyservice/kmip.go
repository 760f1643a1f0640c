package keyservice

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"allium/encryption/kms"
	"allium/internal/fle"
)

// Tags of KMIP 1.0 to 1.2.
const (
	tagAttribute            = 0x420008
	tagAttributeName        = 0x42000A
	tagAttributeValue       = 0x42000B
	tagBatchCount           = 0x42000D
	tagBatchItem            = 0x42000F
	tagBlockCipherMode      = 0x420011
	tagAlgorithm            = 0x420028
	tagCryptographicParams  = 0x42002B
	tagIVCounterNonce       = 0x42003D
	tagKeyBlock             = 0x420040
	tagKeyFormatType        = 0x420042
	tagKeyMaterial          = 0x420043
	tagKeyValue             = 0x420045
	tagObjectType           = 0x420057
	tagOperation            = 0x42005C
	tagPaddingMethod        = 0x42005F
	tagProtocolVersion      = 0x420069
	tagProtocolVersionMajor = 0x42006A
	tagProtocolVersionMinor = 0x42006B
	tagRequestHeader        = 0x420077
	tagRequestMessage       = 0x420078
	tagRequestPayload       = 0x420079
	tagResponseMessage      = 0x42007B
	tagResponsePayload      = 0x42007C
	tagResultMessage        = 0x42007D
	tagResultReason         = 0x42007E
	tagResultStatus         = 0x42007F
	tagSecretData           = 0x420085
	tagSecretDataType       = 0x420086
	tagTemplateAttribute    = 0x420091
	tagUniqueIdentifier     = 0x420094
	tagData                 = 0x4200C2
	tagRandomIV             = 0x4200C5
)

// Operations.
const (
	opCreate   = 0x01
	opRegister = 0x03
	opGet      = 0x0A
	opActivate = 0x12
	opEncrypt  = 0x1F
	opDecrypt  = 0x20
)

// Values of enumerations.
const (
	objectSymmetricKey = 2
	objectSecretData   = 7
	secretDataSeed     = 2
	keyFormatOpaque    = 2
	algorithmAES       = 3
	blockModeCBC       = 1
	paddingPKCS5       = 3
	usageEncrypt       = 4
	usageDecrypt       = 8
)

// ivSize is that of the initialization vector that stands before what a server has wrapped.
const ivSize = 16

// kmipRequest builds the message that asks for one operation, in version 1.minor of the protocol.
func kmipRequest(minor int32, operation uint32, payload ...item) []byte {
	return structure(tagRequestMessage,
		structure(tagRequestHeader,
			structure(tagProtocolVersion, integer(tagProtocolVersionMajor, 1), integer(tagProtocolVersionMinor, minor)),
			integer(tagBatchCount, 1)),
		structure(tagBatchItem,
			enum(tagOperation, operation),
			structure(tagRequestPayload, payload...)),
	).append(nil)
}

func attribute(name string, value item) item {
	return structure(tagAttribute, text(tagAttributeName, name), value)
}

// registerRequest stores a new secret, with which data keys are then wrapped here.
func registerRequest(secret []byte) []byte {
	return kmipRequest(0, opRegister,
		enum(tagObjectType, objectSecretData),
		structure(tagTemplateAttribute, attribute("Cryptographic Usage Mask", integer(tagAttributeValue, 0))),
		structure(tagSecretData,
			enum(tagSecretDataType, secretDataSeed),
			structure(tagKeyBlock,
				enum(tagKeyFormatType, keyFormatOpaque),
				structure(tagKeyValue, octets(tagKeyMaterial, secret)))))
}

func activateRequest(id string) []byte {
	return kmipRequest(0, opActivate, text(tagUniqueIdentifier, id))
}

func getRequest(id string) []byte { return kmipRequest(0, opGet, text(tagUniqueIdentifier, id)) }

// createRequest makes a key that never leaves the server.
func createRequest() []byte {
	return kmipRequest(2, opCreate,
		enum(tagObjectType, objectSymmetricKey),
		structure(tagTemplateAttribute,
			attribute("Cryptographic Algorithm", enum(tagAttributeValue, algorithmAES)),
			attribute("Cryptographic Length", integer(tagAttributeValue, 256)),
			attribute("Cryptographic Usage Mask", integer(tagAttributeValue, usageEncrypt|usageDecrypt))))
}

func cryptographicParameters() item {
	return structure(tagCryptographicParams,
		enum(tagBlockCipherMode, blockModeCBC),
		enum(tagPaddingMethod, paddingPKCS5),
		enum(tagAlgorithm, algorithmAES),
		boolean(tagRandomIV, true))
}

func encryptRequest(id string, data []byte) []byte {
	return kmipRequest(2, opEncrypt, text(tagUniqueIdentifier, id), cryptographicParameters(), octets(tagData, data))
}

func decryptRequest(id string, iv, data []byte) []byte {
	return kmipRequest(2, opDecrypt, text(tagUniqueIdentifier, id), cryptographicParameters(),
		octets(tagData, data), octets(tagIVCounterNonce, iv))
}

// kmipPayload returns the payload of a response, or what the server says went wrong.
func kmipPayload(data []byte) (*item, error) {
	message, err := parseTTLV(data)
	if err != nil {
		return nil, err
	}
	if message.tag != tagResponseMessage {
		return nil, fmt.Errorf("%w: its tag is %06x", errTTLV, message.tag)
	}
	status, ok := message.number(tagResultStatus)
	if !ok {
		return nil, fmt.Errorf("%w: no result status", errTTLV)
	}
	if status != 0 {
		reason, _ := message.number(tagResultReason)
		said, _ := message.text(tagResultMessage)
		return nil, &kmipError{status, reason, said}
	}
	payload, ok := message.find(tagResponsePayload)
	if !ok {
		return nil, fmt.Errorf("%w: no payload", errTTLV)
	}
	return payload, nil
}

// kmipError is an operation that the server did not do.
type kmipError struct {
	status, reason uint32
	message        string
}

func (e *kmipError) Error() string {
	return fmt.Sprintf("result status %d (%s), reason %d (%s): %s", e.status, named(kmipStatus, e.status), e.reason,
		named(kmipReasons, e.reason), e.message)
}

func named(names map[uint32]string, n uint32) string {
	if name, ok := names[n]; ok {
		return name
	}
	return "unknown"
}

var kmipStatus = map[uint32]string{1: "Operation Failed", 2: "Operation Pending", 3: "Operation Undone"}

// kmipReasons are the result reasons of KMIP 1.2.
var kmipReasons = map[uint32]string{
	1: "Item Not Found", 2: "Response Too Large", 3: "Authentication Not Successful", 4: "Invalid Message",
	5: "Operation Not Supported", 6: "Missing Data", 7: "Invalid Field", 8: "Feature Not Supported",
	9: "Operation Canceled By Requester", 10: "Cryptographic Failure", 11: "Illegal Operation", 12: "Permission Denied",
	13: "Object Archived", 14: "Index Out of Bounds", 15: "Application Namespace Not Supported",
	16: "Key Format Type Not Supported", 17: "Key Compression Type Not Supported", 18: "Encoding Option Error",
	19: "Key Value Not Present", 20: "Attestation Required", 21: "Attestation Failed", 256: "General Failure",
}

// kmipSession is a connection to a KMIP server. Requests go over it one after the other.
type kmipSession struct{ conn net.Conn }

// ask sends a request and returns the payload of its response. The connection's deadline bounds it.
func (s *kmipSession) ask(request []byte) (*item, error) {
	if _, err := s.conn.Write(request); err != nil {
		return nil, err
	}
	var header [ttlvHeader]byte
	if _, err := io.ReadFull(s.conn, header[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(header[4:])
	if n > maxTTLV {
		return nil, fmt.Errorf("%w: %d bytes long", errTTLV, n)
	}
	data := make([]byte, ttlvHeader+(uint64(n)+7)/8*8)
	copy(data, header[:])
	if _, err := io.ReadFull(s.conn, data[ttlvHeader:]); err != nil {
		return nil, err
	}
	return kmipPayload(data)
}

var errKMIPAnswer = errors.New("the response lacks what was asked for")

// identify sends a request that makes or activates an object, and returns its identifier.
func (s *kmipSession) identify(request []byte) (string, error) {
	payload, err := s.ask(request)
	if err != nil {
		return "", err
	}
	id, ok := payload.text(tagUniqueIdentifier)
	if !ok || id == "" {
		return "", fmt.Errorf("%w: a unique identifier", errKMIPAnswer)
	}
	return id, nil
}

// create makes and activates an object by the request, and returns its identifier.
func (s *kmipSession) create(request []byte) (string, error) {
	id, err := s.identify(request)
	if err != nil {
		return "", err
	}
	_, err = s.identify(activateRequest(id))
	return id, err
}

// secret returns the 96 bytes of a secret data object.
func (s *kmipSession) secret(id string) ([]byte, error) {
	payload, err := s.ask(getRequest(id))
	if err != nil {
		return nil, err
	}
	material, ok := payload.octets(tagKeyMaterial)
	switch {
	case !ok:
		return nil, fmt.Errorf("%w: key material", errKMIPAnswer)
	case len(material) != KeySize:
		return nil, fmt.Errorf("the secret data object %q has %d bytes instead of %d", id, len(material), KeySize)
	}
	return material, nil
}

// encrypt wraps material with a key of the server's: the initialization vector and the ciphertext.
func (s *kmipSession) encrypt(id string, material []byte) ([]byte, error) {
	payload, err := s.ask(encryptRequest(id, material))
	if err != nil {
		return nil, err
	}
	iv, ok := payload.octets(tagIVCounterNonce)
	if !ok || len(iv) != ivSize {
		return nil, fmt.Errorf("%w: an initialization vector of %d bytes", errKMIPAnswer, ivSize)
	}
	data, ok := payload.octets(tagData)
	if !ok {
		return nil, fmt.Errorf("%w: data", errKMIPAnswer)
	}
	return append(append([]byte(nil), iv...), data...), nil
}

func (s *kmipSession) decrypt(id string, wrapped []byte) ([]byte, error) {
	if len(wrapped) <= ivSize {
		return nil, fmt.Errorf("the wrapped key has %d bytes", len(wrapped))
	}
	payload, err := s.ask(decryptRequest(id, wrapped[:ivSize], wrapped[ivSize:]))
	if err != nil {
		return nil, err
	}
	data, ok := payload.octets(tagData)
	if !ok {
		return nil, fmt.Errorf("%w: data", errKMIPAnswer)
	}
	return data, nil
}

// kmipService is a KMIP server.
type kmipService struct {
	c    *Client
	name string
	p    kms.KMIP
}

// wrap wraps a key with an object of the server, which it makes if the master key names none.
func (k *kmipService) wrap(ctx context.Context, master kms.MasterKey, material []byte) (kms.MasterKey, []byte, error) {
	key := master.(kms.KMIPKey)
	var wrapped []byte
	err := k.do(ctx, key, func(s *kmipSession) error {
		if key.Delegated {
			if key.ID == "" {
				id, err := s.create(createRequest())
				if err != nil {
					return err
				}
				key.ID = id
			}
			var err error
			wrapped, err = s.encrypt(key.ID, material)
			return err
		}
		if key.ID == "" {
			secret := make([]byte, KeySize)
			defer clear(secret)
			if _, err := io.ReadFull(k.c.config.Random, secret); err != nil {
				return err
			}
			id, err := s.create(registerRequest(secret))
			if err != nil {
				return err
			}
			key.ID = id
		}
		secret, err := s.secret(key.ID)
		if err != nil {
			return err
		}
		defer clear(secret)
		wrapped, err = k.c.wrapHere(secret, material)
		return err
	})
	return key, wrapped, err
}

func (k *kmipService) unwrap(ctx context.Context, master kms.MasterKey, wrapped []byte) (material []byte, err error) {
	key := master.(kms.KMIPKey)
	if key.ID == "" {
		return nil, errors.New("keyId required for KMIP")
	}
	err = k.do(ctx, key, func(s *kmipSession) error {
		if key.Delegated {
			material, err = s.decrypt(key.ID, wrapped)
			return err
		}
		secret, err := s.secret(key.ID)
		if err != nil {
			return err
		}
		defer clear(secret)
		material, err = fle.UnwrapKey(secret, wrapped)
		return err
	})
	return material, err
}

// do runs an operation on a new connection to a KMIP server. It makes one attempt, as the
// specification wants it: an operation that makes an object is not safe to repeat.
func (k *kmipService) do(ctx context.Context, key kms.KMIPKey, operation func(*kmipSession) error) error {
	c, provider := k.c, k.name
	endpoint := key.Endpoint
	if endpoint == "" {
		endpoint = k.p.Endpoint
	}
	if endpoint == "" {
		return c.failed(ctx, provider, "", 0, errors.New("neither the master key nor the key service has an endpoint"))
	}
	endpoint = withPort(endpoint, kmipPort)
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	start := time.Now()
	conn, err := c.dial(ctx, provider, endpoint)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { conn.SetDeadline(past) })
		err = operation(&kmipSession{conn})
		stop()
		conn.Close()
	}
	if c.config.Observe != nil {
		c.config.Observe(ctx, Request{Provider: provider, Endpoint: endpoint, Duration: time.Since(start), Attempt: 1,
			Err: err})
	}
	return c.failed(outer, provider, endpoint, 0, err)
}
