package unified

import (
	"slices"
	"strings"

	"allium/bson"
	"allium/mongotest"
)

// Requirement says which deployments a test may run against.
type Requirement struct {
	MinServerVersion string        `bson:"minServerVersion"`
	MaxServerVersion string        `bson:"maxServerVersion"`
	Topologies       []string      `bson:"topologies"`
	ServerParameters bson.Raw      `bson:"serverParameters"`
	Auth             *bool         `bson:"auth"`
	AuthMechanism    string        `bson:"authMechanism"`
	Serverless       string        `bson:"serverless"`
	CSFLE            bson.RawValue `bson:"csfle"`
}

// anyMet says why none of the requirements is met, by the reason that lacks gives for each; "" if
// one is or there are none.
func anyMet(list []Requirement, lacks func(*Requirement) string) string {
	var why []string
	for i := range list {
		reason := lacks(&list[i])
		if reason == "" {
			return ""
		}
		if !slices.Contains(why, reason) {
			why = append(why, reason)
		}
	}
	return strings.Join(why, "; ")
}

// lacks says which requirement a target does not meet, "" if it meets all, as far as can be told
// before it is started.
func (t *Target) lacks(r *Requirement) string {
	switch {
	case r.Serverless == "require" && !t.Serverless:
		return "needs a serverless deployment on Atlas"
	case r.Serverless == "forbid" && t.Serverless:
		return "is not for serverless deployments"
	case t.Serverless && !r.ServerParameters.Lookup("acceptApiVersion2").IsZero():
		return "needs the second version of the Stable API, which only test servers have"
	case t.RequireAPI && isFalse(r.ServerParameters.Lookup("requireApiVersion")):
		return "is for servers that do not require an API version"
	case r.refusesCSFLE():
		return "needs a driver without in-use encryption"
	case !r.hasTopology(t.Topology):
		return "needs topology " + strings.Join(r.Topologies, " or ")
	case strings.EqualFold(r.AuthMechanism, oidc) && !t.OIDC:
		return "needs authentication with " + oidc
	case r.Auth != nil && *r.Auth != t.Auth:
		if *r.Auth {
			return "needs authentication"
		}
		return "needs no authentication"
	case r.MinServerVersion != "" && compareVersions(t.Version, r.MinServerVersion) < 0:
		return "needs server " + r.MinServerVersion
	case r.MaxServerVersion != "" && compareVersions(t.Version, r.MaxServerVersion) > 0:
		return "needs server " + r.MaxServerVersion + " or older"
	}
	return ""
}

func (r *Requirement) hasTopology(name string) bool {
	return len(r.Topologies) == 0 || slices.Contains(r.Topologies, name) ||
		name == "sharded" && slices.Contains(r.Topologies, "sharded-replicaset")
}

func isFalse(v bson.RawValue) bool {
	b, ok := v.Boolean()
	return ok && !b
}

// refusesCSFLE reports whether the test is for drivers that have no in-use encryption. Those of
// libmongocrypt's version are all met.
func (r *Requirement) refusesCSFLE() bool { return isFalse(r.CSFLE) }

// lacks says which requirement the deployment does not meet, "" if it meets all.
func (d *Deployment) lacks(r *Requirement) string {
	if why := d.Target.lacks(r); why != "" {
		return why
	}
	for name, want := range r.ServerParameters.All() {
		if got := d.parameter(name); got.IsZero() || match(want, got, false, nil) != nil {
			return "needs server parameter " + strings.Clone(name) + " to be " + want.String()
		}
	}
	if r.AuthMechanism != "" && !d.hasMechanism(r.AuthMechanism) {
		return "needs authentication mechanism " + r.AuthMechanism
	}
	return ""
}

// ofThreeMembers lists files, by their descriptions, that wait for the events of three members or
// have one of several step down. They have no requirement that says so.
var ofThreeMembers = []string{"replicaset-logging", "replica-set-logging", "rediscover-quickly-after-step-down"}

// Topologies are the topologies that tests run on.
var Topologies = []string{"single", "replicaset", "sharded", "load-balanced"}

// Targets returns what a test runs against: one deployment of each topology that it allows, of the
// newest version that it allows. A server version, as in "4.4" or "4.4.0", restricts the choice to
// that series or that version; "" does not. If there is no target, skip says why.
func Targets(f *File, t *Test, server string) (targets []Target, skip string) {
	if t.SkipReason != "" {
		return nil, t.SkipReason
	}
	lists := [][]Requirement{f.RunOnRequirements, t.RunOnRequirements}
	all := candidates(lists, server)
	for _, topology := range Topologies {
	search:
		for _, version := range all {
			for _, auth := range []bool{false, true} {
				target := Target{Topology: topology, Version: version, Auth: auth, OIDC: auth && usesOIDC(lists)}
				if topology == "load-balanced" && compareVersions(version, "5.0") < 0 {
					continue // there were no load balancers before
				}
				if why := target.unmet(lists); why == "" {
					target.Parameters = target.parameters(lists)
					targets = append(targets, target)
					break search
				}
			}
		}
	}
	if len(targets) > 0 {
		return targets, ""
	}
	var why []string
	for _, topology := range Topologies {
		target := Target{Topology: topology, Version: all[0]}
		for _, list := range lists {
			why = append(why, anyMet(list, func(r *Requirement) string {
				if reason := target.lacks(r); reason != "" && r.hasTopology(topology) {
					return reason
				}
				return ""
			}))
		}
	}
	slices.Sort(why)
	why = slices.DeleteFunc(slices.Compact(why), func(s string) bool { return s == "" })
	return nil, strings.Join(why, "; ")
}

// targetsLike returns what a test runs against if there is no choice but of the version: one
// deployment like target, of the newest version that the test allows, from 5.0 on. If there is
// none, skip says why.
func targetsLike(target Target, f *File, t *Test, server string) (targets []Target, skip string) {
	if t.SkipReason != "" {
		return nil, t.SkipReason
	}
	lists := [][]Requirement{f.RunOnRequirements, t.RunOnRequirements}
	all := candidates(lists, server)
	target.OIDC = usesOIDC(lists)
	for _, target.Version = range all {
		if compareVersions(target.Version, "5.0") >= 0 && target.unmet(lists) == "" {
			target.Parameters = target.parameters(lists)
			return []Target{target}, ""
		}
	}
	target.Version, target.OIDC = all[0], false
	return nil, target.unmet(lists)
}

// usesOIDC reports whether a requirement asks for MONGODB-OIDC.
func usesOIDC(lists [][]Requirement) bool {
	for _, list := range lists {
		if slices.ContainsFunc(list, func(r Requirement) bool { return strings.EqualFold(r.AuthMechanism, oidc) }) {
			return true
		}
	}
	return false
}

// parameters returns the server parameters of a requirement that the target meets.
func (t *Target) parameters(lists [][]Requirement) bson.Raw {
	for _, list := range lists {
		for _, r := range list {
			if r.ServerParameters != nil && t.lacks(&r) == "" {
				return r.ServerParameters
			}
		}
	}
	return nil
}

// unmet says which list of requirements the target does not meet.
func (t *Target) unmet(lists [][]Requirement) string {
	for _, list := range lists {
		if why := anyMet(list, t.lacks); why != "" {
			return why
		}
	}
	return ""
}

// candidates returns the versions to try, the newest first: those of mongotest, and the patch
// levels of them that a requirement ends with. With a server version only that one, or those of its
// series.
func candidates(lists [][]Requirement, server string) []string {
	if strings.Count(server, ".") > 1 {
		return []string{server}
	}
	all := mongotest.Versions()
	for _, list := range lists {
		for _, r := range list {
			for _, v := range mongotest.Versions() {
				if series := v[:strings.LastIndexByte(v, '.')+1]; strings.HasPrefix(r.MaxServerVersion, series) &&
					compareVersions(r.MaxServerVersion, v) < 0 {
					all = append(all, r.MaxServerVersion)
				}
			}
		}
	}
	if server != "" {
		all = slices.DeleteFunc(all, func(v string) bool { return !strings.HasPrefix(v, server+".") })
	}
	slices.SortFunc(all, func(a, b string) int { return compareVersions(b, a) })
	return slices.Compact(all)
}
