package kerberos

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
)

// problem is what an error of the library is about.
type problem struct {
	id      identity
	service service // whose ticket was asked for
	file    string  // the configuration
	login   bool    // with a password or a keytab
}

// code finds the number of a KDC's error in the text of the library's error, which has no other
// place for it.
var code = regexp.MustCompile(`\((\d+)\) K[A-Z]+_`)

// explain adds to an error what to do about it.
func explain(err error, p *problem) error {
	text := err.Error()
	var n int
	if m := code.FindStringSubmatch(text); m != nil {
		n, _ = strconv.Atoi(m[1])
	}
	if hint := p.hint(int32(n), text); hint != "" {
		return fmt.Errorf("%s (%w)", hint, err)
	}
	return err
}

func (p *problem) hint(n int32, text string) string {
	switch n {
	case errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN:
		return fmt.Sprintf("realm %s has no principal %s: check the user name", p.id.realm, p.id)
	case errorcode.KDC_ERR_PREAUTH_FAILED:
		return p.wrongKey()
	case errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN:
		if realm, ok := strings.CutPrefix(p.service.name, "krbtgt/"); ok {
			return fmt.Sprintf("realm %s does not know realm %s: check SERVICE_REALM, or [domain_realm] in %s",
				p.service.realm, realm, p.file)
		}
		return fmt.Sprintf(
			"realm %s has no service %s: check the server's name in the connection string, SERVICE_NAME, SERVICE_HOST and CANONICALIZE_HOST_NAME", p.service.realm, p.service)
	case errorcode.KRB_AP_ERR_SKEW:
		return "the clock of this machine and that of the KDC differ too much: set both by NTP"
	case errorcode.KRB_AP_ERR_TKT_EXPIRED:
		return fmt.Sprintf("the ticket has expired: run kinit %s", p.id)
	case errorcode.KDC_ERR_KEY_EXPIRED:
		return fmt.Sprintf("the password of %s has expired: change it with kpasswd", p.id)
	case errorcode.KDC_ERR_CLIENT_REVOKED:
		return fmt.Sprintf("principal %s is locked: ask the administrator of realm %s", p.id, p.id.realm)
	case errorcode.KDC_ERR_ETYPE_NOSUPP:
		return fmt.Sprintf("the KDC has no key of AES for %s or %s: set the password of that principal anew", p.id,
			p.service)
	}
	switch {
	case strings.Contains(text, "no KDCs defined in configuration"), strings.Contains(text, "no KDC SRV records found"),
		strings.Contains(text, "no such host"):
		return fmt.Sprintf(
			"no KDC is known of realm %s: check the realm's name, and name its KDCs in [realms] of %s, or set dns_lookup_kdc = true there", p.service.realm, p.file)
	case strings.Contains(text, "clock skew with KDC too large"):
		return "the clock of this machine and that of the KDC differ too much: set both by NTP"
	case strings.Contains(text, "client password/keytab incorrect"),
		strings.Contains(text, "getting key from credentials"):
		return p.wrongKey()
	case strings.Contains(text, "ommunicat"): // as in "failed to communicate with KDC"
		return fmt.Sprintf(
			"the KDC of realm %s does not answer: check that it runs, that its address in %s is right, and that port 88 is open", p.service.realm, p.file)
	}
	return ""
}

func (p *problem) wrongKey() string {
	switch {
	case p.login && p.id.keytab != "":
		return fmt.Sprintf(
			"keytab %s does not have the current key of %s: export it anew, for example with ktadd of kadmin",
			p.id.keytab, p.id)
	case p.login:
		return fmt.Sprintf("the password of %s is wrong", p.id)
	}
	return ""
}
