package account

import (
	"crypto/rand"
	"encoding/base64"

	"allium/bson"
	"allium/mongotest/internal/bsondoc"
	"allium/mongotest/internal/srverr"
)

// The documents that stand for users and roles in admin.system.users and admin.system.roles: what
// backups keep, and what a restore merges into them.

// Document returns the user's document.
func (u *User) Document() bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("_id", u.DB+"."+u.Name)
		d.B = bson.AppendBinary(d.B, "userId", bson.BinaryUUID, u.Id[:])
		d.Str("user", u.Name).Str("db", u.DB)
		d.B = u.AppendCredentials(d.B)
		if u.Custom != nil {
			d.Doc("customData", u.Custom)
		}
		d.B = AppendRoles(d.B, "roles", u.Roles)
		if u.Restrictions != nil {
			d.B = bson.AppendArray(d.B, "authenticationRestrictions", u.Restrictions)
		}
	})
}

// AppendCredentials appends what the server keeps instead of the user's password.
func (u *User) AppendCredentials(dst []byte) []byte {
	at, dst := bson.BeginDocumentElement(dst, "credentials")
	if u.DB == ExternalDB {
		return bson.EndDocument(bson.AppendBool(dst, "external", true), at)
	}
	for _, m := range u.SortedMechanisms() {
		c := u.Creds[m]
		dst = bsondoc.Append(dst, m, bsondoc.Of(
			"iterationCount", int32(c.Iterations), "salt", bsondoc.Base64String(c.Salt),
			"storedKey", bsondoc.Base64String(c.StoredKey), "serverKey", bsondoc.Base64String(c.ServerKey)))
	}
	return bson.EndDocument(dst, at)
}

// UserOf returns the user that a document stands for.
func UserOf(doc bson.Raw) (*User, error) {
	doc = bsondoc.Copy(doc)
	u := &User{}
	var ok bool
	if u.Name, ok = doc.Lookup("user").StringValue(); !ok || u.Name == "" {
		return nil, srverr.New(srverr.UnsupportedFormat, "User document needs 'user' field to be a string")
	}
	if u.DB, ok = doc.Lookup("db").StringValue(); !ok || u.DB == "" {
		return nil, srverr.New(srverr.UnsupportedFormat, "User document needs 'db' field to be a string")
	}
	if id, ok := doc.Lookup("userId").Binary(); ok && len(id.Data) == len(u.Id) {
		copy(u.Id[:], id.Data)
	} else {
		rand.Read(u.Id[:])
	}
	credentials, ok := doc.Lookup("credentials").Document()
	if !ok {
		return nil, srverr.New(srverr.UnsupportedFormat, "User document needs 'credentials' field to be an object")
	}
	if u.DB != ExternalDB {
		u.Creds = map[string]scramCredentials{}
		for m, v := range credentials.All() {
			c, err := credentialsOf(v)
			if m != ScramSHA1 && m != ScramSHA256 || err != nil {
				return nil, srverr.New(srverr.UnsupportedFormat, "User document needs credentials of %s or %s",
					ScramSHA1, ScramSHA256)
			}
			u.Mechanisms, u.Creds[m] = append(u.Mechanisms, m), c
		}
		if u.Mechanisms == nil {
			return nil, srverr.New(srverr.UnsupportedFormat,
				"User document must provide credentials for all non-external users")
		}
	}
	if custom, ok := doc.Lookup("customData").Document(); ok {
		u.Custom = custom
	}
	u.Roles, u.Restrictions = rolesOf(doc), restrictionsOf(doc)
	return u, nil
}

// credentialsOf reads the credentials of one mechanism.
func credentialsOf(v bson.RawValue) (c scramCredentials, err error) {
	doc, _ := v.Document()
	n, ok := doc.Lookup("iterationCount").AsInt64()
	if !ok || n < 1 || n > 1<<31-1 {
		return c, srverr.New(srverr.UnsupportedFormat, "no iterationCount")
	}
	c.Iterations = int(n)
	for name, to := range map[string]*[]byte{"salt": &c.Salt, "storedKey": &c.StoredKey, "serverKey": &c.ServerKey} {
		s, _ := doc.Lookup(name).StringValue()
		if *to, err = base64.StdEncoding.DecodeString(s); err != nil || len(*to) == 0 {
			return c, srverr.New(srverr.UnsupportedFormat, "no %s", name)
		}
	}
	return c, nil
}

func rolesOf(doc bson.Raw) (list []Role) {
	roles, _ := doc.Lookup("roles").Array()
	for v := range roles.Values() {
		d, _ := v.Document()
		name, _ := d.Lookup("role").StringValue()
		db, _ := d.Lookup("db").StringValue()
		list = append(list, Role{name, db})
	}
	return list
}

func restrictionsOf(doc bson.Raw) bson.Raw {
	if list, ok := doc.Lookup("authenticationRestrictions").Array(); ok && !list.IsEmpty() {
		return list
	}
	return nil
}

// Document returns the role's document.
func (r *CustomRole) Document() bson.Raw {
	return bsondoc.Build(func(d *bsondoc.Builder) {
		d.Str("_id", r.Name.DB+"."+r.Name.Role).Str("role", r.Name.Role).Str("db", r.Name.DB)
		d.B = bsondoc.AppendDocuments(d.B, "privileges", r.Privileges)
		d.B = AppendRoles(d.B, "roles", r.Roles)
		if r.Restrictions != nil {
			d.B = bson.AppendArray(d.B, "authenticationRestrictions", r.Restrictions)
		}
	})
}

// RoleOf returns the role that a document stands for.
func RoleOf(doc bson.Raw) (*CustomRole, error) {
	doc = bsondoc.Copy(doc)
	r := &CustomRole{}
	r.Name.Role, _ = doc.Lookup("role").StringValue()
	r.Name.DB, _ = doc.Lookup("db").StringValue()
	if r.Name.Role == "" || r.Name.DB == "" {
		return nil, srverr.New(srverr.UnsupportedFormat, "Role documents need the strings 'role' and 'db'")
	}
	privileges, _ := doc.Lookup("privileges").Array()
	for v := range privileges.Values() {
		p, ok := v.Document()
		if !ok {
			return nil, srverr.New(srverr.UnsupportedFormat, "Role documents need 'privileges' that are objects")
		}
		r.Privileges = append(r.Privileges, p)
	}
	r.Roles, r.Restrictions = rolesOf(doc), restrictionsOf(doc)
	return r, nil
}
