package encryption

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"allium"
	"allium/bson"
	"allium/encryption/kms"
	"allium/internal/crypt"
	"allium/internal/failure"
	"allium/internal/option"
	"allium/internal/redact"
	"allium/mongoerr"
)

// A DataKey is a data key in the key vault. Its key material is wrapped.
type DataKey struct {
	ID       bson.UUID
	AltNames []string
	Created  time.Time
	Updated  time.Time
	// Provider is the name of the key service that holds the master key, and MasterKey names the
	// master key.
	Provider  string
	MasterKey kms.MasterKey
	// Raw is the whole document.
	Raw bson.Raw
}

func parseDataKey(doc bson.Raw) (*DataKey, error) {
	d, err := crypt.ParseDocument(doc)
	if err != nil {
		return nil, err
	}
	k := &DataKey{ID: d.ID, AltNames: d.AltNames, Created: d.Created, Updated: d.Updated, Raw: doc}
	if k.Provider, k.MasterKey, err = kms.MasterKeyFromBSON(d.MasterKey); err != nil {
		return nil, fmt.Errorf("key %s: %w", d.ID, err)
	}
	return k, nil
}

// DataKeyOptions are the options of CreateDataKey.
type DataKeyOptions struct {
	// MasterKey wraps the data key. Local and KMIP providers do not need one.
	MasterKey kms.MasterKey
	// AltNames are names by which the data key can be found. They should be unique: see
	// CreateIndex.
	AltNames []string
	// Material is the key itself, 96 random bytes. Nil: it is generated.
	Material []byte
}

// Format prints the options without Material, with every verb.
func (o DataKeyOptions) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{MasterKey:%+v AltNames:%q Material:%s}", o.MasterKey, o.AltNames, redact.Mask(string(o.Material)))
}

// MarshalJSON returns the options without Material.
func (o DataKeyOptions) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		MasterKey kms.MasterKey
		AltNames  []string
		Material  string
	}{o.MasterKey, o.AltNames, redact.Mask(string(o.Material))})
}

// masterKeyDocument returns the document that stands for a master key.
func masterKeyDocument(provider string, key kms.MasterKey) (bson.Raw, error) {
	if key == nil {
		switch kind, _, _ := strings.Cut(provider, ":"); kind {
		case "local":
			key = kms.LocalKey{}
		case "kmip":
			key = kms.KMIPKey{}
		}
	}
	if err := kms.CheckMasterKey(provider, key); err != nil {
		return nil, err
	}
	return kms.AppendMasterKey(nil, provider, key), nil
}

// CreateDataKey creates a data key, wraps it with a master key of the named key service, stores it
// in the key vault, and returns its id. With a *mongoerr.WriteConcernError the id is returned, too:
// the data key is there, on fewer members than were asked for.
func (c *Client) CreateDataKey(ctx context.Context, provider string, opts ...DataKeyOptions) (bson.UUID, error) {
	id, err := c.createDataKey(ctx, provider, opts)
	if err != nil {
		return id, fmt.Errorf("create data key: %w", err)
	}
	return id, nil
}

func (c *Client) createDataKey(ctx context.Context, provider string, opts []DataKeyOptions) (bson.UUID, error) {
	o := option.Merge(opts)
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return bson.UUID{}, err
	}
	defer end()
	masterKey, err := masterKeyDocument(provider, o.MasterKey)
	if err != nil {
		return bson.UUID{}, err
	}
	d, err := c.keys.NewDocument(ctx, masterKey, o.AltNames, o.Material, rand.Reader)
	if err != nil {
		return bson.UUID{}, err
	}
	if _, err = c.vault.InsertOne(ctx, d.Append(nil)); err != nil && !failure.Applied(err) {
		return bson.UUID{}, err
	}
	return d.ID, err
}

// CreateIndex creates the index of the key vault that makes alternative names unique. Call it once
// before you use alternative names.
func (c *Client) CreateIndex(ctx context.Context) error {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("create index: %w", err)
	}
	defer end()
	_, err = c.vault.CreateIndex(ctx, allium.IndexModel{
		Keys: bson.D{{Key: "keyAltNames", Value: 1}}, Unique: true,
		PartialFilter: bson.D{{Key: "keyAltNames", Value: bson.D{{Key: "$exists", Value: true}}}},
	})
	if err != nil {
		return fmt.Errorf("create index: %w", err)
	}
	return nil
}

// Key returns the data key with an id. If there is none, errors.Is(err, mongoerr.ErrNoDocuments)
// holds.
func (c *Client) Key(ctx context.Context, id bson.UUID) (*DataKey, error) {
	return c.findKey(ctx, bson.D{{Key: "_id", Value: id}})
}

// KeyByAltName returns the data key with an alternative name, as Key does.
func (c *Client) KeyByAltName(ctx context.Context, name string) (*DataKey, error) {
	return c.findKey(ctx, bson.D{{Key: "keyAltNames", Value: name}})
}

func (c *Client) findKey(ctx context.Context, filter bson.D) (*DataKey, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("data key: %w", err)
	}
	defer end()
	doc, err := c.vault.FindOne(ctx, filter)
	if err != nil {
		return nil, fmt.Errorf("data key: %w", err)
	}
	return parseDataKey(doc)
}

// Keys iterates over all data keys of the key vault. It ends after the first error.
func (c *Client) Keys(ctx context.Context) iter.Seq2[*DataKey, error] {
	return func(yield func(*DataKey, error) bool) {
		ctx, end, err := c.begin(ctx)
		if err != nil {
			yield(nil, fmt.Errorf("data keys: %w", err))
			return
		}
		defer end()
		cursor, err := c.vault.Find(ctx, bson.D{})
		if err != nil {
			yield(nil, fmt.Errorf("data keys: %w", err))
			return
		}
		for doc, err := range cursor.Seq(ctx) {
			var k *DataKey
			if err == nil {
				k, err = parseDataKey(doc)
			}
			if err != nil {
				yield(nil, fmt.Errorf("data keys: %w", err))
				return
			}
			if !yield(k, nil) {
				return
			}
		}
	}
}

// DeleteKey deletes a data key. Values that were encrypted with it can never be decrypted again.
// The result has the number of deleted keys, 0 or 1.
func (c *Client) DeleteKey(ctx context.Context, id bson.UUID) (allium.DeleteResult, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return allium.DeleteResult{}, fmt.Errorf("data key %s: %w", id, err)
	}
	defer end()
	return c.vault.DeleteOne(ctx, bson.D{{Key: "_id", Value: id}})
}

// AddKeyAltName adds an alternative name to a data key. It returns the data key as it was before,
// nil if there is none.
func (c *Client) AddKeyAltName(ctx context.Context, id bson.UUID, name string) (*DataKey, error) {
	return c.changeKey(ctx, id, bson.D{{Key: "$addToSet", Value: bson.D{{Key: "keyAltNames", Value: name}}}})
}

// RemoveKeyAltName removes an alternative name from a data key. It returns the data key as it was
// before, nil if there is none.
func (c *Client) RemoveKeyAltName(ctx context.Context, id bson.UUID, name string) (*DataKey, error) {
	// The array goes with its last name: data keys must not have an empty one.
	var text any = name
	if strings.HasPrefix(name, "$") { // else the path of a field, or a variable
		text = bson.D{{Key: "$literal", Value: name}}
	}
	return c.changeKey(ctx, id, bson.A{bson.D{{Key: "$set",
		Value: bson.D{{Key: "keyAltNames", Value: bson.D{{Key: "$cond", Value: bson.A{
			bson.D{{Key: "$eq", Value: bson.A{"$keyAltNames", bson.A{text}}}},
			"$$REMOVE",
			bson.D{{Key: "$filter", Value: bson.D{
				{Key: "input", Value: "$keyAltNames"},
				{Key: "cond", Value: bson.D{{Key: "$ne", Value: bson.A{"$$this", text}}}},
			}}},
		}}}}}}}})
}

func (c *Client) changeKey(ctx context.Context, id bson.UUID, update any) (*DataKey, error) {
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("data key %s: %w", id, err)
	}
	defer end()
	doc, err := c.vault.FindOneAndUpdate(ctx, bson.D{{Key: "_id", Value: id}}, update)
	switch {
	case failure.Applied(err):
		var key *DataKey // as it was before the change, which was made
		if doc != nil {
			key, _ = parseDataKey(doc)
		}
		return key, fmt.Errorf("data key %s: %w", id, err)
	case errors.Is(err, mongoerr.ErrNoDocuments):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("data key %s: %w", id, err)
	}
	return parseDataKey(doc)
}

// RewrapOptions are the options of RewrapManyDataKey.
type RewrapOptions struct {
	// Provider is the name of the key service, and MasterKey the master key there, that will wrap
	// the data keys. Empty: each keeps its own master key.
	Provider  string
	MasterKey kms.MasterKey
}

// RewrapManyDataKey rotates master keys: it wraps the data keys that match a filter with another
// master key, or with a new version of their own. Encrypted values do not change. If one of the
// keys cannot be unwrapped or wrapped, none is changed. It is not an error if no key matches.
func (c *Client) RewrapManyDataKey(ctx context.Context, filter any,
	opts ...RewrapOptions) (allium.BulkWriteResult, error) {
	out, err := c.rewrap(ctx, filter, opts)
	if err != nil {
		return out, fmt.Errorf("rewrap data keys: %w", err)
	}
	return out, nil
}

func (c *Client) rewrap(ctx context.Context, filter any, opts []RewrapOptions) (allium.BulkWriteResult, error) {
	var none allium.BulkWriteResult
	o := option.Merge(opts)
	var masterKey bson.Raw
	switch {
	case o.Provider != "":
		var err error
		if masterKey, err = masterKeyDocument(o.Provider, o.MasterKey); err != nil {
			return none, err
		}
	case o.MasterKey != nil:
		return none, errors.New("MasterKey without Provider")
	}
	ctx, end, err := c.begin(ctx)
	if err != nil {
		return none, err
	}
	defer end()
	cursor, err := c.vault.Find(ctx, filter)
	if err != nil {
		return none, err
	}
	docs, err := cursor.All(ctx)
	if err != nil || len(docs) == 0 {
		return none, err
	}
	keys, err := c.keys.Rewrap(ctx, docs, masterKey)
	if err != nil {
		return none, err
	}
	models := make([]allium.WriteModel, len(keys))
	for i, k := range keys {
		models[i] = c.vault.UpdateOneModel(bson.D{{Key: "_id", Value: k.ID}}, bson.D{
			{Key: "$set", Value: bson.D{{Key: "masterKey", Value: k.MasterKey},
				{Key: "keyMaterial", Value: k.Material}}},
			{Key: "$currentDate", Value: bson.D{{Key: "updateDate", Value: true}}},
		})
	}
	return c.vault.BulkWrite(ctx, models)
}
