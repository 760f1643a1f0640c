package analysis

// Words that say little of what a text is about, by language: articles, pronouns, prepositions,
// conjunctions and the forms of auxiliary verbs. English has the list of Lucene's
// documentation; the others are this project's, and docs/search.md says so.

const stopEnglish = `a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with`

const stopFrench = `au aux avec ce ces dans de des du elle en et eux il ils je la le les leur lui ma mais me même mes moi mon ne nos notre nous on ou par pas pour qu que qui sa se ses son sur
ta te tes toi ton tu un une vos votre vous c d j l à m n s t y été étée étées étés étant suis es sommes êtes sont serai seras sera serons serez seront serais serait serions seriez seraient
étais était étions étiez étaient fus fut fûmes fûtes furent sois soit soyons soyez soient fusse fusses fût fussions fussiez fussent ayant eu eue eues eus ai as avons avez ont aurai auras aura
aurons aurez auront aurais aurait aurions auriez auraient avais avait avions aviez avaient eut eûmes eûtes eurent aie aies ait ayons ayez aient eusse eusses eût eussions eussiez eussent
ceci cela celà cet cette ici ils les leurs quel quels quelle quelles sans soi`

const stopGerman = `aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch auf aus bei bin bis bist da damit dann der den des dem die das daß dass derselbe
dein deine deinem deinen deiner deines denn dazu dich dir du dies diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer eines einig einige einmal er ihn ihm es etwas euer eure
eurem euren eurer eures für gegen gewesen hab habe haben hat hatte hatten hier hin hinter ich mich mir ihr ihre ihrem ihren ihrer ihres euch im in indem ins ist jede jedem jeden jeder jedes jene jenem
jenen jener jenes jetzt kann kein keine keinem keinen keiner keines können könnte machen man manche mein meine meinem meinen meiner meines mit muss musste nach nicht nichts noch nun nur ob oder ohne
sehr sein seine seinem seinen seiner seines selbst sich sie ihnen sind so solche soll sollte sondern sonst über um und uns unse unsem unsen unser unses unter viel vom von vor während war waren warst
was weg weil weiter welche welchem welchen welcher welches wenn werde werden wie wieder will wir wird wirst wo wollen wollte würde würden zu zum zur zwar zwischen`

const stopItalian = `ad al allo ai agli all agl alla alle con col coi da dal dallo dai dagli dall dagl dalla dalle di del dello dei degli dell degl della delle in nel nello nei negli nell negl nella
nelle su sul sullo sui sugli sull sugl sulla sulle per tra contro io tu lui lei noi voi loro mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre vostro vostra vostri vostre mi
ti ci vi lo la li le gli ne il un uno una ma ed se perché anche come dov dove che chi cui non più quale quanto quanti quanta quante quello quelli quella quelle questo questi questa queste si tutto tutti
a c e i l o ho hai ha abbiamo avete hanno abbia abbiate abbiano avrò avrai avrà avremo avrete avranno avevo avevi aveva avevamo avevate avevano ebbi ebbe avuto sono sei è siamo siete sia siate siano
sarò sarai sarà saremo sarete saranno ero eri era eravamo eravate erano fui fu fosti fosse fossero essendo faccio fai fa facciamo fanno sto stai sta stiamo stanno`

const stopSpanish = `de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo
nos durante todos uno les ni contra otros ese eso ante ellos e esto mí antes algunos qué unos yo otro otras otra él tanto esa estos mucho quienes nada muchos cual poco ella estar estas algunas algo
nosotros mi mis tú te ti tu tus ellas nosotras vosotros vosotras os mío mía míos mías tuyo tuya tuyos tuyas suyo suya suyos suyas nuestro nuestra nuestros nuestras vuestro vuestra vuestros vuestras esos
esas estoy estás está estamos estáis están esté estén estaba estaban estado he has ha hemos habéis han haya hayan había habían hube hubo soy eres es somos sois son sea seamos sean seré será serán era
eran éramos fui fue fuimos fueron siendo sido tengo tienes tiene tenemos tienen tenga tengan tenía tenían tuve tuvo`

const stopPortuguese = `de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das à seu sua ou quando muito nos já eu também só pelo pela até isso ela entre depois sem
mesmo aos seus quem nas me esse eles você essa num nem suas meu às minha numa pelos elas qual nós lhe deles essas esses pelas este dele tu te vocês vos lhes meus minhas teu tua teus tuas nosso nossa
nossos nossas dela delas esta estes estas aquele aquela aqueles aquelas isto aquilo estou está estamos estão estive esteve estava estavam esteja hei há havemos hão houve haja sou somos são era éramos
eram fui foi fomos foram seja sejam serei será seremos serão seria tenho tem temos têm tinha tinham tive teve tenha tenham`

const stopDutch = `de en van ik te dat die in een hij het niet zijn is was op aan met als voor had er maar om hem dan zou of wat mijn men dit zo door over ze zich bij ook tot je mij uit der daar haar
naar heb hoe heeft hebben deze u want nog zal me zij nu ge geen omdat iets worden toch al waren veel meer doen toen moet ben zonder kan hun dus alles onder ja eens hier wie werd altijd doch wordt wezen
kunnen ons zelf tegen na reeds wil kon niets uw iemand geweest andere`

const stopDanish = `og i jeg det at en den til er som på de med han af for ikke der var mig sig men et har om vi min havde ham hun nu over da fra du ud sin dem os op man hans hvor eller hvad skal selv her
alle vil blev kunne ind når være dog noget ville jo deres efter ned skulle denne end dette mit også under have dig anden hende mine alt meget sit sine vor mod disse hvis din nogle hos blive mange ad
bliver hendes været thi jer sådan`

const stopSwedish = `och det att i en jag hon som han på den med var sig för så till är men ett om hade de av icke mig du henne då sin nu har inte hans honom skulle hennes där min man ej vid kunde något
från ut när efter upp vi dem vara vad över än dig kan sina här ha mot alla under någon eller allt mycket sedan ju denna själv detta åt utan varit hur ingen mitt ni bli blev oss din dessa några deras
blir mina samma vilken er sådan vår blivit dess inom mellan sådant varför varje vilka ditt vem vilket sitta sådana vart dina vars vårt våra ert era vilkas`

const stopNorwegian = `og i jeg det at en et den til er som på de med han av ikke ikkje der så var meg seg men ett har om vi min mitt ha hadde hun nå over da ved fra du ut sin dem oss opp man kan hans
hvor eller hva skal selv sjøl her alle vil bli ble blei blitt kunne inn når være kom noen noe ville dere som deres kun ja etter ned skulle denne for deg si sine sitt mot å meget hvorfor dette disse uten
hvordan ingen din ditt blir samme hvilken hvilke sånn inni mellom vår hver hvem vors hvis både bare enn fordi før mange også slik vært`

const stopFinnish = `olla olen olet on olemme olette ovat ole oli olisi olisit olisin olisimme olisitte olisivat olit olin olimme olitte olivat ollut olleet en et ei emme ette eivät minä minun minut
minua sinä sinun sinut sinua hän hänen hänet häntä me meidän meitä te teidän teitä he heidän heitä tämä tämän tätä tässä tästä tuo tuon tuota se sen sitä siinä siitä nämä näiden niiden ne niitä kuka
kenen ketä mikä minkä mitä missä mistä joka jonka jota jossa josta jotka että ja jos koska kuin mutta niin sekä sillä tai vaan vai vaikka kanssa mukaan noin poikki yli kun nyt itse`

const stopHungarian = `a ahogy ahol aki akik akkor alatt által általában amely amelyek amelyekben amelyeket amelyet amelynek ami amit amolyan amíg amikor át abban ahhoz annak arra arról az azok azon azt
azzal azért aztán azután azonban bár be belül benne cikk cikkek csak de e eddig egész egy egyes egyetlen egyéb egyik egyre ekkor el elég ellen elő először előtt első én éppen ebben ehhez emilyen ennek
erre ez ezt ezek ezen ezzel ezért és fel felé hanem hiszen hogy hogyan igen így illetve ill ilyen ilyenkor ison ismét itt jó jól jobban kell kellett keresztül keressünk ki kívül között közül legalább
lehet lehetett legyen lenne lenni lesz lett maga magát majd már más másik meg még mellett mert mely melyek mi mit míg miért milyen mikor minden mindent mindenki mindig mint mintha mivel most nagy nagyobb
nagyon ne néha nekem neki nem néhány nélkül nincs olyan ott össze ő ők őket pedig persze rá s saját sem semmi sok sokat sokkal számára szemben szerint szinte talán tehát teljes tovább továbbá több úgy
ugyanis új újabb újra után utána utolsó vagy vagyis valaki valami valamint való vagyok van vannak volt voltam voltak voltunk vissza vele viszont volna`

const stopRussian = `и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее мне было вот от меня еще нет о из ему теперь когда даже ну ли если уже или ни быть был него до
вас нибудь уж вам ведь там потом себя ничего ей может они тут где есть надо ней для мы тебя их чем была сам чтоб без будто чего раз тоже себе под будет ж тогда кто этот того потому этого какой ним этом
мой тем чтобы нее были куда зачем всех можно при об хоть после над больше тот через эти нас про них какая много разве эту моя свою этой перед иногда лучше чуть том такой им более всегда конечно всю между`

const stopRomanian = `a abia acea aceasta această aceea acei aceia acel acela acele acelea acest acesta aceste acestea aceşti aceştia ai aici al ale alea am ar are aş aşadar asta atât atunci au avea avem aveţi azi
ca că când care cât cât către ce cea cei cel cele ceva chiar ci cine cu cum da dacă dar de deci deja deoarece despre din după ea ei el ele eram este eşti eu fi fie fiecare fost iar îi îl îmi în încât îţi
la le li lor lui mai mă mea mei mele meu mi mult nici noastră nostru noi nu nici o ori pe pentru până prin s sa să sau se si şi sunt sunteţi ta tale te tu un una unde unei unui vă voastră vostru voi vor`

const stopTurkish = `acaba ama aslında az bazı belki biri birkaç birşey biz bu çok çünkü da daha de defa diye eğer en gibi hem hep hepsi her hiç için ile ise kez ki kim mı mu mü nasıl ne neden nerde nerede nereye niçin
niye o sanki şey siz şu tüm ve veya ya yani bir ben sen onlar bunu şunu onu bana sana olan olarak oldu olduğu olur var yok kadar sonra önce`

const stopIrish = `a ach ag agus an aon ar arna as b' ba beirt bhúr caoga ceathair ceathrar chomh chtó chuig chun cois céad cúig cúigear d' daichead dar de deich deichniúr den dhá do don dtí dá dár dó faoi faoin
faoina faoinár fara fiche gach gan go gur haon hocht i iad idir in ina ins inár is le leis lena lenár m' mar mo mé na nach naoi naonúr ná ní níor nó nócha ocht ochtar os roimh sa seacht seachtar sna
sula sé sí tar thar thú triúr trí trína trínár tríocha tú um ár é éis í ó ón óna ónár`

const stopArabic = `من في على و فى يا عن مع ان هو علي ما اللي كل بعد ده اليوم أن يوم انا إلى كان ايه اللى الى دي بين انت أنا حتى لما فيه هذا واحد احنا اي كده إن او أو عليه ف دى مين الي كانت أي بس يكون له دا ليه أول ضد ال
هي هى هذه ذلك التي الذي الذين لا لم لن قد ثم`

const stopPersian = `و در به از که این را با است برای آن یک خود تا کرد بر هم نیز گفت می شود وی شد دارد ما اما یا شده باید هر آنها بود او دیگر دو مورد شما بین پیش پس اگر همه صورت یکی هستند بی من هیچ چه`
