// Package xoptions sets options that the official driver's tools need. Of the keys that it knows
// there, "rawData" is here, "addCommandFields", and of a client "deployment" and
// "authenticateToAnything"; the setters return an error for others.
package xoptions

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/internal/optionsutil"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/coding"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"
)

// SetInternalClientOptions sets an option of a client: "deployment" is one of package drivertest,
// "authenticateToAnything" has no effect.
func SetInternalClientOptions(opts *options.ClientOptions, key string, option any) error {
	if key == "authenticateToAnything" {
		if _, ok := option.(bool); !ok {
			return wrongType(key, option, "bool")
		}
		return nil
	}
	if key != "deployment" {
		return fmt.Errorf("unsupported option: %q", key)
	}
	d, ok := option.(driver.Deployment)
	if !ok {
		return wrongType(key, option, "driver.Deployment")
	}
	opts.Deployment = d
	return nil
}

func wrongType(key string, option any, want string) error {
	return fmt.Errorf("unexpected type for %q: %T is not %s", key, option, want)
}

// internal returns the function that sets an option in what into returns.
func internal[T any](key string, option any, into func(*T) *optionsutil.Options) (func(*T) error, error) {
	if key == "rawData" {
		return raw(key, option, into)
	}
	return fields(key, option, into)
}

// raw is internal for operations that have no option but rawData.
func raw[T any](key string, option any, into func(*T) *optionsutil.Options) (func(*T) error, error) {
	if key != "rawData" {
		return nil, fmt.Errorf("unsupported option: %q", key)
	}
	return typed[bool](key, option, "bool", into)
}

// fields is internal for operations that have no option but addCommandFields.
func fields[T any](key string, option any, into func(*T) *optionsutil.Options) (func(*T) error, error) {
	if key != coding.CommandFields {
		return nil, fmt.Errorf("unsupported option: %q", key)
	}
	return typed[bson.D](key, option, "bson.D", into)
}

// typed is internal for a key whose values are of type V.
func typed[V, T any](key string, option any, want string, into func(*T) *optionsutil.Options) (func(*T) error, error) {
	v, ok := option.(V)
	if !ok {
		return nil, wrongType(key, option, want)
	}
	return func(o *T) error {
		p := into(o)
		*p = optionsutil.With(*p, key, v)
		return nil
	}, nil
}

// SetInternalAggregateOptions sets an option of AggregateOptions.
func SetInternalAggregateOptions(a *options.AggregateOptionsBuilder, key string, option any) error {
	set, err := raw(key, option, func(o *options.AggregateOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalBulkWriteOptions sets an option of BulkWriteOptions.
func SetInternalBulkWriteOptions(a *options.BulkWriteOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.BulkWriteOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalClientBulkWriteOptions sets an option of ClientBulkWriteOptions.
func SetInternalClientBulkWriteOptions(a *options.ClientBulkWriteOptionsBuilder, key string, option any) error {
	into := func(o *options.ClientBulkWriteOptions) *optionsutil.Options { return &o.Internal }
	set, err := internal(key, option, into)
	if key == coding.CollectionUUIDs {
		set, err = typed[[][]byte](key, option, "[][]byte", into)
	}
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalCountOptions sets an option of CountOptions.
func SetInternalCountOptions(a *options.CountOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.CountOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalCreateIndexesOptions sets an option of CreateIndexesOptions.
func SetInternalCreateIndexesOptions(a *options.CreateIndexesOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.CreateIndexesOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalDeleteManyOptions sets an option of DeleteManyOptions.
func SetInternalDeleteManyOptions(a *options.DeleteManyOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.DeleteManyOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalDeleteOneOptions sets an option of DeleteOneOptions.
func SetInternalDeleteOneOptions(a *options.DeleteOneOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.DeleteOneOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalDistinctOptions sets an option of DistinctOptions.
func SetInternalDistinctOptions(a *options.DistinctOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.DistinctOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalDropCollectionOptions sets an option of DropCollectionOptions.
func SetInternalDropCollectionOptions(a *options.DropCollectionOptionsBuilder, key string, option any) error {
	set, err := fields(key, option, func(o *options.DropCollectionOptions) *optionsutil.Options {
		return &o.Internal
	})
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalDropIndexesOptions sets an option of DropIndexesOptions.
func SetInternalDropIndexesOptions(a *options.DropIndexesOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.DropIndexesOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalEstimatedDocumentCountOptions sets an option of EstimatedDocumentCountOptions.
func SetInternalEstimatedDocumentCountOptions(a *options.EstimatedDocumentCountOptionsBuilder, key string,
	option any) error {
	set, err := internal(key, option, func(o *options.EstimatedDocumentCountOptions) *optionsutil.Options {
		return &o.Internal
	})
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalFindOneAndDeleteOptions sets an option of FindOneAndDeleteOptions.
func SetInternalFindOneAndDeleteOptions(a *options.FindOneAndDeleteOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.FindOneAndDeleteOptions) *optionsutil.Options {
		return &o.Internal
	})
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalFindOneAndReplaceOptions sets an option of FindOneAndReplaceOptions.
func SetInternalFindOneAndReplaceOptions(a *options.FindOneAndReplaceOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.FindOneAndReplaceOptions) *optionsutil.Options {
		return &o.Internal
	})
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalFindOneAndUpdateOptions sets an option of FindOneAndUpdateOptions.
func SetInternalFindOneAndUpdateOptions(a *options.FindOneAndUpdateOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.FindOneAndUpdateOptions) *optionsutil.Options {
		return &o.Internal
	})
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalFindOneOptions sets an option of FindOneOptions.
func SetInternalFindOneOptions(a *options.FindOneOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.FindOneOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalFindOptions sets an option of FindOptions.
func SetInternalFindOptions(a *options.FindOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.FindOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalInsertManyOptions sets an option of InsertManyOptions.
func SetInternalInsertManyOptions(a *options.InsertManyOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.InsertManyOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalInsertOneOptions sets an option of InsertOneOptions.
func SetInternalInsertOneOptions(a *options.InsertOneOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.InsertOneOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalListCollectionsOptions sets an option of ListCollectionsOptions.
func SetInternalListCollectionsOptions(a *options.ListCollectionsOptionsBuilder, key string, option any) error {
	set, err := raw(key, option, func(o *options.ListCollectionsOptions) *optionsutil.Options {
		return &o.Internal
	})
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalListIndexesOptions sets an option of ListIndexesOptions.
func SetInternalListIndexesOptions(a *options.ListIndexesOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.ListIndexesOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalReplaceOptions sets an option of ReplaceOptions.
func SetInternalReplaceOptions(a *options.ReplaceOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.ReplaceOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalUpdateManyOptions sets an option of UpdateManyOptions.
func SetInternalUpdateManyOptions(a *options.UpdateManyOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.UpdateManyOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}

// SetInternalUpdateOneOptions sets an option of UpdateOneOptions.
func SetInternalUpdateOneOptions(a *options.UpdateOneOptionsBuilder, key string, option any) error {
	set, err := internal(key, option, func(o *options.UpdateOneOptions) *optionsutil.Options { return &o.Internal })
	if err == nil {
		a.Opts = append(a.Opts, set)
	}
	return err
}
