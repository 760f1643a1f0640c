package analysis

// The Daitch-Mokotoff Soundex: six digits for how a name sounds, several where a spelling is
// read in several ways.

import (
	"slices"
	"strings"
	"unicode"
)

// soundexRules are the combinations of letters with their codes at the start of a name, before a
// vowel, and elsewhere; a bar stands between alternatives, a dash for nothing.
const soundexRules = `AI 0 1 - AJ 0 1 - AY 0 1 - AU 0 7 - A 0 - - B 7 7 7 CHS 5 54 54 CH 5|4 5|4 5|4 CK 5|45 5|45 5|45 CZ 4 4 4 CS 4 4 4 CSZ 4 4 4 CZS 4 4 4 C 5|4 5|4 5|4
DRZ 4 4 4 DRS 4 4 4 DS 4 4 4 DSH 4 4 4 DSZ 4 4 4 DZ 4 4 4 DZH 4 4 4 DZS 4 4 4 D 3 3 3 DT 3 3 3 EI 0 1 - EJ 0 1 - EY 0 1 - EU 1 1 - E 0 - - FB 7 7 7 F 7 7 7 G 5 5 5 H 5 5 -
IA 1 - - IE 1 - - IO 1 - - IU 1 - - I 0 - - J 1|4 -|4 -|4 KS 5 54 54 KH 5 5 5 K 5 5 5 L 8 8 8 MN 66 66 66 M 6 6 6 NM 66 66 66 N 6 6 6 OI 0 1 - OJ 0 1 - OY 0 1 - O 0 - -
P 7 7 7 PF 7 7 7 PH 7 7 7 Q 5 5 5 RZ 94|4 94|4 94|4 RS 94|4 94|4 94|4 R 9 9 9 SCHTSCH 2 4 4 SCHTSH 2 4 4 SCHTCH 2 4 4 SHTCH 2 4 4 SHCH 2 4 4 SHTSH 2 4 4 SHT 2 43 43 SCHT 2 43 43 SCHD 2 43 43
SCH 4 4 4 SH 4 4 4 STCH 2 4 4 STSCH 2 4 4 SC 2 4 4 STRZ 2 4 4 STRS 2 4 4 STSH 2 4 4 ST 2 43 43 SZCZ 2 4 4 SZCS 2 4 4 SZT 2 43 43 SHD 2 43 43 SZD 2 43 43 SD 2 43 43 SZ 4 4 4 S 4 4 4
TCH 4 4 4 TTCH 4 4 4 TTSCH 4 4 4 TH 3 3 3 TRZ 4 4 4 TRS 4 4 4 TSCH 4 4 4 TSH 4 4 4 TS 4 4 4 TTS 4 4 4 TTSZ 4 4 4 TC 4 4 4 TZ 4 4 4 TTZ 4 4 4 TZS 4 4 4 TSZ 4 4 4 T 3 3 3
UI 0 1 - UJ 0 1 - UY 0 1 - U 0 - - UE 0 - - V 7 7 7 W 7 7 7 X 5 54 54 Y 1 - - ZDZ 2 4 4 ZDZH 2 4 4 ZHDZH 2 4 4 ZD 2 43 43 ZHD 2 43 43 ZH 4 4 4 ZS 4 4 4 ZSCH 4 4 4 ZSH 4 4 4 Z 4 4 4`

var soundexCodes = map[string][3]string{}

func init() {
	f := strings.Fields(soundexRules)
	for i := 0; i+3 < len(f); i += 4 {
		soundexCodes[f[i]] = [3]string{f[i+1], f[i+2], f[i+3]}
	}
}

// maxSoundex is how many readings of a name are followed.
const maxSoundex = 64

// soundex returns the codes of a name, in order.
func soundex(name string) []string {
	letters := strings.Map(func(r rune) rune {
		if r < 'A' || r > 'Z' {
			return -1
		}
		return r
	}, strings.ToUpper(foldASCII(strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, name))))
	type reading struct{ code, last string }
	all := []reading{{}}
	for i := 0; i < len(letters); {
		n := min(7, len(letters)-i)
		for n > 1 && soundexCodes[letters[i:i+n]][0] == "" {
			n--
		}
		rule := soundexCodes[letters[i:i+n]]
		which := 2
		switch {
		case i == 0:
			which = 0
		case i+n < len(letters) && strings.IndexByte("AEIOUJY", letters[i+n]) >= 0:
			which = 1
		}
		var next []reading
		for _, r := range all {
			for code := range strings.SplitSeq(rule[which], "|") {
				if code == "-" {
					code = ""
				}
				x := reading{r.code, code}
				if code != r.last || code == "" || code == "66" {
					x.code += code
				}
				if !slices.Contains(next, x) && len(next) < maxSoundex {
					next = append(next, x)
				}
			}
		}
		all = next
		i += n
	}
	var out []string
	for _, r := range all {
		code := (r.code + "000000")[:6]
		if !slices.Contains(out, code) {
			out = append(out, code)
		}
	}
	slices.Sort(out)
	return out
}
