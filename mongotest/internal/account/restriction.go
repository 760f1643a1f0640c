package account

import (
	"net"
	"net/netip"
	"strings"

	"allium/bson"
)

// Authentication restrictions say from which addresses, and at which of the server's, somebody may
// log in. A list of them is met if one of its documents is, with all of its conditions; a user has
// to meet its own list and those of all its roles, of inherited ones too.

// MayLogIn reports whether the restrictions let a user log in on a connection between two
// addresses. On one without addresses of the Internet Protocol, as on a Unix socket, conditions are
// never met.
func (g *Registry) MayLogIn(u *User, client, server net.Addr) bool {
	from, at := addressOf(client), addressOf(server)
	if !meets(u.Restrictions, from, at) {
		return false
	}
	roles, _ := g.Inherited(u.Roles)
	for _, rn := range roles {
		if def := g.FindRole(rn); def != nil && !meets(def.Restrictions, from, at) {
			return false
		}
	}
	return true
}

// RestrictionsOf returns the lists of restrictions of roles that have any.
func (g *Registry) RestrictionsOf(roles []Role) (lists []bson.Raw) {
	for _, rn := range roles {
		if def := g.FindRole(rn); def != nil && len(def.Restrictions) > 0 {
			lists = append(lists, def.Restrictions)
		}
	}
	return lists
}

func addressOf(a net.Addr) netip.Addr {
	p, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return netip.Addr{}
	}
	return p.Addr().Unmap().WithZone("")
}

// meets tells whether one of the documents of a list is met; an empty list demands nothing.
func meets(list bson.Raw, client, server netip.Addr) bool {
	if len(list) == 0 {
		return true
	}
	for v := range list.Values() {
		doc := bson.Raw(v.Value)
		if within(doc.Lookup("clientSource"), client) && within(doc.Lookup("serverAddress"), server) {
			return true
		}
	}
	return false
}

// within tells whether an address is one of those that a condition allows. There may be no such
// condition. One with a text that is no address allows none.
func within(v bson.RawValue, a netip.Addr) bool {
	if v.IsZero() {
		return true
	}
	if !a.IsValid() {
		return false
	}
	found := false
	for _, text := range addresses(v) {
		p, ok := parseRange(text)
		if !ok {
			return false
		}
		found = found || p.Contains(a)
	}
	return found
}

func addresses(v bson.RawValue) (list []string) {
	if s, ok := v.StringValue(); ok {
		return []string{s}
	}
	for e := range bson.Raw(v.Value).Values() {
		s, _ := e.StringValue()
		list = append(list, s)
	}
	return list
}

// parseRange reads an address or a range in CIDR notation.
func parseRange(s string) (netip.Prefix, bool) {
	if !strings.Contains(s, "/") {
		a, err := netip.ParseAddr(s)
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), err == nil && a.Zone() == ""
	}
	p, err := netip.ParsePrefix(s)
	if err == nil && p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p, err == nil
}
