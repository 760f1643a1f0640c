package bson

import (
	"reflect"
	"strconv"
	"strings"

	"allium/bson"
)

// Values in variables of type any, and in what consists of such, are encoded and decoded by Allium
// at once, without a look at codecs. This file does it one by one, for registries that have codecs
// for what is in there.

var (
	typeAny = reflect.TypeFor[any]()
	typeE   = reflect.TypeFor[E]()
)

// holdsAny reports whether t is any, or a container of what is in variables of that type.
func (w *way) holdsAny(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return t == typeAny
	case reflect.Slice:
		return t.Elem() == typeAny || t.Elem() == typeE
	case reflect.Map:
		return t.Elem() == typeAny && t.Key().Kind() == reflect.String
	}
	return false
}

// looksInside reports whether a codec is registered for variables of type any, or for a type that
// values become in them.
func (w *way) looksInside() bool {
	if w.registry.typeDecoders[typeAny] != nil {
		return true
	}
	for of := TypeDouble; of <= TypeDecimal128; of++ {
		if t := w.typeOfAny(of); t != nil && w.registry.decoder(t) != nil {
			return true
		}
	}
	return false
}

// typeOfAny returns what values of a BSON type become in variables of type any.
func (w *way) typeOfAny(of Type) reflect.Type {
	if t := w.types[of]; t != nil {
		return t
	}
	return w.registry.typeOfAny(of)
}

// encodeHeld encodes a slice or a map of what is in variables of type any by the codec for those.
func (w *way) encodeHeld(ec EncodeContext, vw ValueWriter, v reflect.Value) error {
	enc := w.registry.typeEncoders[typeAny]
	switch {
	case v.IsNil() || v.Type().Elem() == typeE:
		t, data, err := w.options.AppendDefault(nil, v)
		if err != nil {
			return err
		}
		return writeValue(vw, t, data)
	case v.Kind() == reflect.Slice:
		aw, err := vw.WriteArray()
		for i := 0; err == nil && i < v.Len(); i++ {
			var ew ValueWriter
			if ew, err = aw.WriteArrayElement(); err == nil {
				err = enc.EncodeValue(ec, ew, v.Index(i))
			}
		}
		if err != nil {
			return err
		}
		return aw.WriteArrayEnd()
	}
	dw, err := vw.WriteDocument()
	for iter := v.MapRange(); err == nil && iter.Next(); {
		var ew ValueWriter
		if ew, err = dw.WriteDocumentElement(iter.Key().String()); err == nil {
			err = enc.EncodeValue(ec, ew, iter.Value())
		}
	}
	if err != nil {
		return err
	}
	return dw.WriteDocumentEnd()
}

// decodeHeld decodes what holdsAny is true of.
func (w *way) decodeHeld(v bson.RawValue, into reflect.Value) error {
	t := into.Type()
	doc, isDocument := v.Document()
	array, isArray := v.Array()
	switch {
	case t == typeAny:
		return w.decodeAny(v, into)
	case t.Kind() == reflect.Map && isDocument:
		if into.IsNil() {
			into.Set(reflect.MakeMap(t))
		} else if w.options.ClearMaps {
			into.Clear() // in place: the program may have given the map itself
		}
	case t.Kind() == reflect.Slice && (t.Elem() == typeE && isDocument || t.Elem() == typeAny && isArray):
		into.Set(reflect.MakeSlice(t, 0, 0))
	default:
		return w.decodePlain(v, into)
	}
	elements := bson.Raw(doc)
	if isArray {
		elements = bson.Raw(array)
	}
	in := w
	if w.registry.dialect != nil && w.isContainer(t) {
		in = w.inside(t)
	}
	n := 0
	for rest := elements.Elements(); len(rest) > 0; {
		key, value, more, err := bson.ReadElement(rest)
		if err != nil {
			return w.decodeError(err)
		}
		key, rest = strings.Clone(key), more // the bytes are the caller's
		held := reflect.New(typeAny).Elem()
		if isArray {
			key = strconv.Itoa(n)
			n++
		}
		if err := in.decodeAny(value, held); err != nil {
			return under([]string{key}, err)
		}
		switch {
		case t.Kind() == reflect.Map:
			into.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), held)
		case isArray:
			into.Set(reflect.Append(into, held))
		default:
			into.Set(reflect.Append(into, reflect.ValueOf(E{Key: key, Value: held.Interface()})))
		}
	}
	return nil
}

// decodePlain decodes without what is registered for the variable's type, or done for it here.
func (w *way) decodePlain(v bson.RawValue, into reflect.Value) error {
	if v.Type == TypeEmbeddedDocument {
		if err := framed(v.Value); err != nil {
			return err
		}
	}
	_, dec := w.own(into.Type(), true)
	if dec == nil {
		dec = w.options.UnmarshalDefault
	}
	if err := dec(v, into); err != nil {
		return w.decodeError(err)
	}
	return nil
}

// decodeAny decodes a value into a variable of type any.
func (w *way) decodeAny(v bson.RawValue, into reflect.Value) error {
	if dec := w.registry.typeDecoders[typeAny]; dec != nil {
		return w.decodeBy(dec)(v, into)
	}
	return w.decodeByTable(v, into)
}

// decodeByTable decodes a value into a variable of type any as one of the type that the table of
// types has for it.
func (w *way) decodeByTable(v bson.RawValue, into reflect.Value) error {
	t := w.typeOfAny(v.Type)
	switch {
	case t == nil || isNull(v.Type):
		into.SetZero()
		return w.decodePlain(v, into)
	case v.Type == TypeEmbeddedDocument || v.Type == TypeArray:
	case w.registry.decoder(t) == nil: // settings may make something else of it
		return w.decodePlain(v, into)
	}
	x := reflect.New(t)
	if err := w.UnmarshalInside(v.Type, v.Value, x.Interface()); err != nil {
		return err
	}
	into.Set(x.Elem())
	return nil
}
